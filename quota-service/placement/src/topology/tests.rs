use super::*;
use crate::fleet::numbers;

fn of(text: &str) -> Topology {
    Topology::parse(text).unwrap()
}

fn rtx() -> Topology {
    Topology::preset("rtx4090-8").unwrap()
}

fn a100() -> Topology {
    Topology::preset("a100-8").unwrap()
}

#[test]
fn a_set_is_aligned_where_it_touches_as_few_parts_as_the_hardware_allows() {
    let (rtx, a100) = (rtx(), a100());
    let aligned = |topology: &Topology, domain, gpus: u64| {
        Ruler::new(topology, domain, gpus.count_ones() as u16).align(gpus).is_aligned()
    };
    assert!(aligned(&rtx, Domain::Numa, 0b0000_1001), "a GPU a NUMA node: one socket is what can be had");
    assert!(!aligned(&rtx, Domain::Numa, 0b0001_1000));
    assert!(aligned(&rtx, Domain::Socket, 0b1010_0000) && !aligned(&rtx, Domain::Socket, 0b1000_0001));
    assert!(aligned(&a100, Domain::Numa, 0b1111) && !aligned(&a100, Domain::Numa, 0b1_1110));
    assert!(aligned(&a100, Domain::Socket, 0b11_1111), "six GPUs fit no socket: two are the fewest");
    assert!(aligned(&a100, Domain::NvlinkIsland, 0b1001_0000) && !aligned(&rtx, Domain::NvlinkIsland, 0b11));
    let four =
        of("numa 0 socket 0 gpus 0-1 cores 0; numa 1 socket 0 gpus 2-3 cores 1; numa 2 socket 1 gpus 4-5 cores 2; \
                   numa 3 socket 1 gpus 6-7 cores 3; nvlink 0-1; nvlink 2-3; nvlink 4-5; nvlink 6-7");
    assert!(
        aligned(&four, Domain::Numa, 0b1111) && !aligned(&four, Domain::Numa, 0b11_0011),
        "two NUMA nodes, two sockets"
    );
    assert!(!aligned(&four, Domain::Numa, 0b0111_0100), "three NUMA nodes");
    assert!(!aligned(&four, Domain::NvlinkIsland, 0b1111), "two islands are not one");
    let order = |gpus| Ruler::new(&four, Domain::Numa, 4).align(gpus);
    assert!(
        order(0b1111) < order(0b11_0011)
            && order(0b11_0011) < order(0b11_0101)
            && order(0b11_0101) < Alignment::UNKNOWN
    );
}

/// By a look at every set.
fn best_by_looking(ruler: &Ruler<'_>, available: u64, count: u16) -> Option<Alignment> {
    let subsets = (0..1_u64 << 8).filter(|set| set.count_ones() == u32::from(count) && set & !available == 0);
    subsets.map(|set| ruler.align(set)).min()
}

#[test]
fn the_best_of_what_is_available_is_found_without_a_look_at_every_set() {
    let odd =
        of("numa 0 socket 0 gpus 0-2 cores 0; numa 1 socket 0 gpus 3 cores 1; numa 2 socket 1 gpus 4-5 cores 2; \
                  numa 3 socket 2 gpus 6-7 cores 3; nvlink 1-2; nvlink 4-7");
    for topology in [rtx(), a100(), odd] {
        for (domain, count) in Domain::ALL.into_iter().flat_map(|domain| (1..=8).map(move |count| (domain, count))) {
            let ruler = Ruler::new(&topology, domain, count);
            for available in 0..=255_u64 {
                let best = best_by_looking(&ruler, available, count);
                assert_eq!(ruler.best(available), best, "{domain:?} {count} of {available:b}");
                let chosen = ruler.choose(available);
                assert_eq!(chosen.map(|gpus| ruler.align(gpus)), best, "{domain:?} {count} of {available:b}");
                assert!(chosen.is_none_or(|gpus| gpus & !available == 0 && gpus.count_ones() == u32::from(count)));
            }
        }
    }
}

#[test]
fn gpus_come_from_where_fewest_are_left() {
    let rtx = rtx();
    let two = Ruler::new(&rtx, Domain::Numa, 2);
    assert_eq!(two.choose(0b1111_0011), Some(0b0011), "the socket that is broken already");
    assert_eq!(two.choose(0b1111_0001), Some(0b11_0000));
    assert_eq!(scarcest(&rtx, 0b1111_0001, 2), Some(0b1_0001), "who does not care takes the lone one first");
    assert_eq!(scarcest(&rtx, 0b1, 2), None);
}

#[test]
fn nodes_of_many_gpus_are_searched_part_by_part() {
    let numa = |number: u32| {
        format!("numa {number} socket {} gpus {}-{} cores {number}", number / 4, number * 8, number * 8 + 7)
    };
    let large = of(&(0..8).map(numa).collect::<Vec<_>>().join("; "));
    let available = 0xfe_7f_3f_fc_fe_7f_3f_fc;
    for count in [2, 6, 7, 12, 20, 32, 48] {
        for domain in [Domain::Numa, Domain::Socket] {
            let ruler = Ruler::new(&large, domain, count);
            let chosen = ruler.choose(available).unwrap();
            assert_eq!((chosen.count_ones(), chosen & !available), (u32::from(count), 0));
            assert_eq!(Some(ruler.align(chosen)), ruler.best(available), "{domain:?} {count}");
        }
    }
    assert_eq!(numbers(Ruler::new(&large, Domain::Numa, 7).choose(available).unwrap()).count(), 7);
}
