//! Windows that are sold ahead.

use super::*;
use vocab::ReservedWindow;

fn window(of: &str, gpus: u32, from: i64, to: i64) -> ReservedWindow {
    let organization = Organization::parse(of).unwrap();
    ReservedWindow { from: at(from), to: at(to), organization, gpus: MilliGpus::from_gpus(gpus) }
}

fn of(organization: &str, request: Request) -> Request {
    Request { organization: Organization::parse(organization).unwrap(), ..request }
}

/// Fate of a task that is submitted: it starts, or the code of its refusal.
fn asks(
    pool: &mut Pool,
    seconds: i64,
    name: &str,
    (class, organization): (TaskClass, &str),
    gpus: u16,
    h: Option<u64>,
) -> String {
    let request = of(organization, request(name, class, GpuRequest::Whole(gpus), 1, h.map(hours)));
    let (report, done) = pool.handle(at(seconds), &Command::Submit(request));
    done.unwrap();
    if started(&report).contains(&name) {
        return "starts".to_owned();
    }
    match pool.why_it_waits(&task(name)) {
        Some(WaitReason::Refused(refusal)) => refusal.code().to_owned(),
        other => format!("{other:?}"),
    }
}

fn limited(nodes: usize, rules: PoolRules, windows: &[ReservedWindow]) -> Pool {
    let mut pool = pool(nodes, rules);
    pool.handle(at(0), &limits(1_000)).1.unwrap();
    pool.set_windows(windows.to_vec());
    pool
}

const SPOT: (TaskClass, &str) = (TaskClass::Spot, "a");

#[test]
fn spot_backfills_up_to_the_edge_of_a_window_and_no_promise_reaches_into_it() {
    let mut pool = limited(2, PoolRules::default(), &[window("lab", 8, 7_200, 14_400)]);
    assert_eq!(asks(&mut pool, 0, "one", SPOT, 8, Some(1)), "starts");
    assert_eq!(asks(&mut pool, 0, "two", SPOT, 4, Some(2)), "starts", "it ends as the window begins");
    assert_eq!(asks(&mut pool, 0, "four", SPOT, 4, Some(4)), "starts", "there is room beside the window");
    pool.handle(at(1), &Command::Finish { task: task("one") }).1.unwrap();
    assert_eq!(asks(&mut pool, 1, "more", SPOT, 8, Some(2)), "reaches_reservation", "by one second");
    assert_eq!(asks(&mut pool, 1, "some", SPOT, 4, Some(2)), "starts", "four and four are beside the window");
}

#[test]
fn the_sentence_of_a_refusal_names_the_instant_and_what_is_left() {
    let mut pool = limited(1, PoolRules::default(), &[window("lab", 6, 7_200, 14_400)]);
    assert_eq!(asks(&mut pool, 0, "four", SPOT, 4, Some(4)), "reaches_reservation");
    let Some(WaitReason::Refused(refusal)) = pool.why_it_waits(&task("four")) else { panic!("it waits") };
    let sentence = "a promise of 4h would reach into a reserved window: at 2023-11-15T00:13:20Z it leaves 2.000 of 4.000 GPUs; \
                    ask for a guarantee that ends before, or for none";
    assert_eq!(refusal.to_string(), sentence);
}

#[test]
fn spot_at_will_leaves_with_notice_before_a_window_and_comes_back_after_it() {
    let rules = PoolRules { grace_s: 60, ..PoolRules::default() };
    let mut pool = limited(2, rules, &[window("lab", 8, 3_600, 7_200)]);
    assert_eq!(asks(&mut pool, 0, "kept", SPOT, 8, Some(4)), "starts");
    assert_eq!(asks(&mut pool, 0, "will", SPOT, 8, None), "starts");
    assert!(pool.pass(at(3_539)).facts.is_empty());
    assert_eq!(pool.next_window_change(), Some(at(3_540)));
    let report = pool.pass(at(3_540));
    let cleared = Fact::Cleared {
        organization: Organization::parse("lab").unwrap(),
        victims: vec![task("will")],
        free: at(3_600),
    };
    assert_eq!(report.facts, [cleared]);
    assert_eq!(pool.pass(at(5_000)).facts, [], "its GPUs are kept");
    assert_eq!(started(&pool.pass(at(7_200))), ["will"]);
}

#[test]
fn nothing_starts_on_gpus_of_spot_that_still_saves_before_a_window() {
    let rules = PoolRules { grace_s: 60, ..PoolRules::default() };
    let mut pool = limited(1, rules, &[window("lab", 8, 3_600, 7_200)]);
    assert_eq!(asks(&mut pool, 0, "will", SPOT, 8, None), "starts");
    assert!(matches!(pool.pass(at(3_540)).facts[..], [Fact::Cleared { .. }]));
    let theirs = of("lab", request("theirs", TaskClass::Hp, GpuRequest::Whole(8), 1, None));
    let (report, done) = pool.handle(at(3_545), &Command::Submit(theirs));
    done.unwrap();
    let starts = report.facts.iter().find_map(|fact| match fact {
        Fact::Started { starts, .. } => Some(*starts),
        _ => None,
    });
    assert_eq!(starts, Some(at(3_600)), "the notice of the victim lasts until then");
}

#[test]
fn a_task_that_finishes_as_a_window_begins_is_no_victim_of_it() {
    let mut pool = limited(1, PoolRules::default(), &[window("lab", 8, 3_600, 7_200)]);
    assert_eq!(asks(&mut pool, 0, "will", SPOT, 8, None), "starts");
    let (report, done) = pool.handle(at(3_600), &Command::Finish { task: task("will") });
    assert_eq!((done, report.consequences.cuts), (Ok(()), vec![]));
}

#[test]
fn in_a_window_its_organization_alone_gets_the_gpus() {
    let mut pool = limited(2, PoolRules::default(), &[window("lab", 8, 3_600, 7_200)]);
    assert_eq!(asks(&mut pool, 3_600, "other", (TaskClass::Hp, "a"), 8, None), "starts");
    assert_eq!(asks(&mut pool, 3_600, "another", (TaskClass::Hp, "a"), 1, None), "kept_for_reservation");
    assert_eq!(asks(&mut pool, 3_600, "spot", SPOT, 1, None), "kept_for_reservation");
    assert_eq!(asks(&mut pool, 3_600, "theirs", (TaskClass::Hp, "lab"), 1, None), "starts", "others of its size wait");
    assert_eq!(asks(&mut pool, 3_600, "rest", (TaskClass::Hp, "lab"), 7, None), "starts");
    let after = pool.pass(at(7_200));
    assert_eq!(started(&after), [""; 0], "the tasks of a window run on after it");
    pool.handle(at(7_300), &Command::Finish { task: task("rest") }).1.unwrap();
    assert!(pool.running(&task("another")).is_some() && pool.running(&task("spot")).is_some());
}

#[test]
fn a_promise_is_not_renewed_into_a_window() {
    let mut pool = limited(1, PoolRules::default(), &[window("lab", 8, 5_400, 7_200)]);
    assert_eq!(asks(&mut pool, 0, "spot", SPOT, 8, Some(1)), "starts");
    let report = pool.pass(at(3_600));
    assert_eq!(kinds(&report), [("spot", OutcomeKind::Kept)]);
    assert!(report.facts.is_empty(), "it runs on at will: {report:?}");
    assert!(matches!(pool.pass(at(5_400)).facts[..], [Fact::Cleared { .. }]));
}

#[test]
fn a_window_that_promises_leave_no_room_for_is_oversold() {
    let mut pool = limited(1, PoolRules::default(), &[]);
    assert_eq!(asks(&mut pool, 0, "spot", SPOT, 4, Some(4)), "starts");
    pool.set_windows(vec![window("lab", 4, 3_600, 7_200)]);
    assert_eq!(pool.oversold(), None);
    pool.set_windows(vec![window("lab", 4, 3_600, 7_200), window("other", 1, 7_000, 8_000)]);
    let beside = pool.oversold().unwrap();
    let gpus = MilliGpus::from_gpus;
    assert_eq!((beside.at, beside.reserved, beside.promised), (at(7_000), gpus(5), gpus(4)));
}

#[test]
fn a_window_that_begins_as_another_one_ends_gets_its_gpus() {
    let rules = PoolRules { grace_s: 60, ..PoolRules::default() };
    let follow = [window("lab", 8, 3_600, 7_200), window("other", 8, 7_200, 10_800)];
    let mut pool = limited(2, rules, &follow);
    assert_eq!(pool.oversold(), None, "the notice of the second lies in the first");
    assert_eq!(asks(&mut pool, 0, "beside", SPOT, 8, Some(4)), "starts");
    assert_eq!(asks(&mut pool, 0, "will", SPOT, 4, None), "starts");
    let cleared = |report: &Report| report.facts.iter().any(|fact| matches!(fact, Fact::Cleared { .. }));
    assert!(cleared(&pool.pass(at(3_540))));
    assert_eq!(asks(&mut pool, 3_600, "theirs", (TaskClass::Hp, "lab"), 8, None), "starts");
    pool.handle(at(7_100), &Command::Finish { task: task("theirs") }).1.unwrap();
    assert_eq!(asks(&mut pool, 7_100, "spot", SPOT, 1, None), "kept_for_reservation");
    assert_eq!(asks(&mut pool, 7_200, "others", (TaskClass::Hp, "other"), 8, None), "starts");
    let one_more = window("third", 1, 7_199, 7_300);
    pool.set_windows(follow.into_iter().chain([one_more]).collect());
    assert!(pool.oversold().is_some());
}

#[test]
fn a_fact_that_clears_what_a_promise_keeps_is_refused() {
    let mut pool = limited(1, PoolRules::default(), &[]);
    assert_eq!(asks(&mut pool, 0, "spot", SPOT, 4, Some(4)), "starts");
    let organization = Organization::parse("lab").unwrap();
    let cleared = Fact::Cleared { organization, victims: vec![task("spot")], free: at(0) };
    assert_eq!(pool.apply(at(0), &cleared), Err(Fault::NotAtWill { task: task("spot") }));
}

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Submit { is_hp: bool, by_owner: bool, gpus: u16, hours: Option<u64> },
    Finish(prop::sample::Index),
    Sell { gpus: u32, in_s: i64, for_s: i64 },
    Limit(u32),
}

fn step() -> impl Strategy<Value = (i64, Step)> {
    let hours = prop::option::weighted(0.8, prop::sample::select(vec![1_u64, 2, 4]));
    let submit = (any::<bool>(), any::<bool>(), 1_u16..9, hours)
        .prop_map(|(is_hp, by_owner, gpus, hours)| Step::Submit { is_hp: is_hp && by_owner, by_owner, gpus, hours });
    let sell =
        (1_u32..16, 0_i64..20_000, 1_i64..10_000).prop_map(|(gpus, in_s, for_s)| Step::Sell { gpus, in_s, for_s });
    let finish = any::<prop::sample::Index>().prop_map(Step::Finish);
    (0_i64..3_000, prop_oneof![5 => submit, 1 => finish, 2 => sell, 1 => (0_u32..40).prop_map(Step::Limit)])
}

/// The most by which windows and promises that last exceed the capacity at one instant: counted apart from the code.
fn overlap(pool: &Pool, windows: &[ReservedWindow], notice_s: i64) -> i64 {
    let promises: Vec<(UnixSeconds, i64)> =
        pool.fleet().tasks().values().filter_map(|one| Some((one.guarantee?.until, one.gpus_milli() as i64))).collect();
    let over = |window: &ReservedWindow| {
        // Those that end as it begins leave it their GPUs; promises end by its notice.
        let (begin, notice) = (window.from.max(pool.now()), window.from.plus_s(-notice_s).max(pool.now()));
        let open = windows.iter().filter(|one| one.is_open(begin));
        let sold: i64 = open.map(|one| one.gpus.milli() as i64).sum();
        let promised: i64 = promises.iter().filter(|(until, _)| *until > notice).map(|(_, milli)| milli).sum();
        if sold > 0 { sold + promised - pool.capacity().milli() as i64 } else { 0 }
    };
    windows.iter().filter(|one| pool.now() < one.to).map(over).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(28), cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn in_any_history_no_promise_reaches_into_a_window(
        steps in prop::collection::vec(step(), 1..14), notice_s in prop::sample::select(vec![0_i64, 300]), has_quota in any::<bool>(),
    ) {
        let policy = if has_quota { Policy::GFS } else { Policy::parse("gfs-noquota").unwrap() };
        let mut pool = Pool::new(policy, PoolRules { grace_s: notice_s, ..PoolRules::default() });
        let mut rebuilt = pool.clone();
        for command in (0..3).map(add).chain([limits(40)]) {
            pool.handle(at(0), &command).0.facts.iter().for_each(|fact| drop(rebuilt.apply(at(0), fact)));
        }
        let (mut now, mut windows) = (0, Vec::new());
        for (number, (passed_s, step)) in steps.into_iter().enumerate() {
            now += passed_s;
            let command = match step {
                Step::Submit { is_hp, by_owner, gpus, hours: h } => {
                    let class = if is_hp { TaskClass::Hp } else { TaskClass::Spot };
                    let request = request(&format!("t{number}"), class, GpuRequest::Whole(gpus), 1, h.filter(|_| !is_hp).map(hours));
                    Command::Submit(of(if by_owner { "lab" } else { "a" }, request))
                }
                Step::Finish(index) => match pool.fleet().tasks().keys().nth(index.index(8)) {
                    Some(task) => Command::Finish { task: task.clone() },
                    None => Command::Pass,
                },
                Step::Sell { gpus, in_s, for_s } => {
                    for fact in pool.pass(at(now)).facts {
                        rebuilt.apply(at(now), &fact).unwrap();
                    }
                    windows.push(window("lab", gpus, now + in_s, now + in_s + for_s));
                    pool.set_windows(windows.clone());
                    if pool.oversold().is_some() {
                        windows.pop();
                        pool.set_windows(windows.clone());
                    }
                    Command::Pass
                }
                Step::Limit(gpus) => limits(gpus),
            };
            let (report, done) = pool.handle(at(now), &command);
            prop_assert_eq!(done, Ok(()));
            for fact in &report.facts {
                rebuilt.apply(at(now), fact).unwrap();
            }
            rebuilt.pass_to(at(now));
            prop_assert_eq!(&pool.snapshot(), &rebuilt.snapshot(), "facts rebuild it without its windows");
            prop_assert!(overlap(&pool, &windows, notice_s) <= 0, "at {now} {:?}", windows);
            invariants::books_balance(pool.fleet());
        }
    }
}
