use super::*;
use command_line::Config as _;

fn fault(change: impl FnOnce(&mut Config)) -> String {
    let mut config = Config { spot_qos: "spot1h=1,spot4h=4".parse().unwrap(), ..Config::default() };
    change(&mut config);
    config.check().map_or_else(|fault| format!("{}: {}", fault.key, fault.detail), |()| "good".to_owned())
}

#[test]
fn lists_are_read_and_printed_alike_and_faults_name_the_entry() {
    let spot: Guarantees = "spot4h=4, scavenge=0,spot1h=1".parse().unwrap();
    assert_eq!(spot.to_string(), "scavenge=0,spot1h=1,spot4h=4");
    assert_eq!(spot.promised().iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["spot1h", "spot4h"]);
    for (wrong, why) in
        [("spot", "write NAME=HOURS"), ("a=200", "outside 1 h"), ("a=1,a=2", "listed twice"), ("--x=1", "no name")]
    {
        assert!(wrong.parse::<Guarantees>().unwrap_err().contains(why), "{wrong}");
    }
    assert!("a;b".parse::<Names>().is_err());
    assert_eq!("publish+hook".parse::<Mode>().unwrap().to_string(), "publish+hook");
    assert!("write".parse::<Mode>().unwrap_err().contains("observe, publish, publish+hook"));
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_their_key() {
    assert_eq!(fault(|_| {}), "good");
    assert!(fault(|config| config.look_s = 0).starts_with("look_s: 0 is below 1"));
    assert!(
        fault(|config| config.lease_s = 20).starts_with("lease_s: 20 s: write more than twice slurm_command_timeout_s")
    );
    assert!(fault(|config| config.watchdog_after_s = 60).starts_with("watchdog_after_s: 60 s: write more than twice"));
    assert!(fault(|config| config.hp_qos = "spot1h".parse().unwrap()).starts_with("hp_qos: spot1h is in spot_qos"));
    assert!(
        fault(|config| config.hard_qos = "normal".parse().unwrap())
            .starts_with("hard_qos: normal is no QOS of spot_qos")
    );
    let same = fault(|config| {
        config.mode = Mode::Publish;
        config.spot_qos = "a=4,b=4".parse().unwrap();
    });
    assert!(same.starts_with("spot_qos: a and b promise the same hours"), "{same}");
    let none = fault(|config| {
        config.mode = Mode::Publish;
        config.nesting = Nesting::Accounts;
    });
    assert!(none.starts_with("spot_accounts: mode is publish and none has hours"), "{none}");
}
