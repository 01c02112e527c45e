//! Jobs that do not begin although there is room for them.

use super::*;

#[test]
fn room_that_a_job_cannot_use_goes_to_others_and_it_is_tried_again_later() {
    for counted in [None, Some(16)] {
        let mut sim = Sim::new(&[12, 12], 3);
        sim.run(60, &[(1, 1)]);
        let large = sim.submit(0, 8, 20, Hold::Queue);
        match counted {
            // Each node has a GPU of HP, and none has eight.
            None => drop(sim.stuck.insert(large)),
            // An exclusive job on a larger node.
            Some(gpus) => drop(sim.counted.insert(large, gpus)),
        }
        let first = sim.run(300, &[(1, 1)]);
        let later = sim.run(400, &[(1, 1)]);
        assert!(later > 11.0, "{first}, then {later}");
        let day = sim.run(20_000, &[(1, 1)]);
        assert!(day > 11.2, "{day}: a few tries are left");
        let since = sim.at;
        sim.stuck.clear();
        sim.counted.clear();
        sim.run(7_500, &[(1, 1)]);
        assert!(sim.waited_s(large, since) < 7_500, "{counted:?}");
    }
}

#[test]
fn a_job_whose_room_smaller_ones_take_is_tried_again_at_growing_distances() {
    let mut sim = Sim::new(&[12, 12], 3);
    let small = [(0, 1), (1, 1)];
    sim.run(60, &small);
    let large = sim.submit(0, 8, 20, Hold::Queue);
    sim.nice.insert(large);
    // Twice its room is made and lost.
    sim.run(150, &small);
    let soon = sim.run(300, &small);
    let held = sim.run(20_000, &small);
    assert!(soon > 11.0 && held > 11.0, "{soon}, then {held}");
    let since = sim.at;
    sim.nice.clear();
    sim.run(7_500, &small);
    assert!(sim.waited_s(large, since) < 7_500);
}

#[test]
fn a_job_waits_for_gpus_without_loss_of_its_part_where_nobody_else_could_use_it() {
    let mut sim = Sim::new(&[12, 12], 3);
    let first = sim.submit(0, 8, 20, Hold::Queue);
    sim.stuck.insert(first);
    sim.run(600, &[]);
    assert!(sim.limits[0] >= 8, "{:?}", sim.limits);
}
