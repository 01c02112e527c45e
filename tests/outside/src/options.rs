//! The command line.

use crate::Outcome;
use std::path::PathBuf;

pub const HELP: &str = "\
Attacks quota-service from outside: it starts the programs beside itself on free ports of loopback, with databases of
their own, speaks HTTP to them, and shares no code with them. One line of JSON for each campaign and database.

Usage: outside CAMPAIGN [OPTION...]

Campaigns:
  hangups        clients hang up at random bytes of random writes; then what is written is audited and whole
  poison         honest clients, with and without requests at the edge of every type beside them
  unread         clients ask for the largest answers and read none of them
  full-disk      the file system of the database is full and has room again, ten times
  organizations  new organizations by the hundred thousand in one request, and SIGTERM in the middle
  all            each of these

Options:
  --seed N            seed of what is drawn (1)
  --seconds N         length of a campaign; organizations: the most seconds of one request (600)
  --database NAME     sqlite, postgres or both (sqlite, and postgres where HEADROOM_TEST_POSTGRES is set, as
                      tests/with-postgres.sh does)
  --programs FOLDER   where quota-service, datasets and train lie (beside this program)
  --out FILE          append each line to this file, too
  --cycles N          full-disk: times that the file system is full (10)
  --sizes N,N,...     organizations: new organizations of each request (1000,10000,100000,140000)
  --clients N         unread: connections that read nothing (200)
  --rss-mib N         unread: the most that the service may grow by (400)
  --quota-ms N        unread: the most that 99 of 100 quotas may take meanwhile (1000)
  --ratio N           poison: least honest throughput, of that without poison (0.8)

Exit codes: 0 no violation, 1 a violation, 2 wrong usage, 3 the campaign could not be carried out.

Examples:
  outside hangups --seconds 60 --seed 7
  tests/with-postgres.sh target/debug/outside all --seconds 600 --out soak.json
";

pub const CAMPAIGNS: [&str; 5] = ["hangups", "poison", "unread", "full-disk", "organizations"];

#[derive(Clone, Debug)]
pub struct Options {
    pub campaign: String,
    pub seed: u64,
    pub seconds: u64,
    pub databases: Vec<&'static str>,
    pub programs: PathBuf,
    pub out: Option<PathBuf>,
    pub cycles: u64,
    pub sizes: Vec<usize>,
    pub clients: usize,
    pub rss_mib: u64,
    pub quota_ms: f64,
    pub ratio: f64,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Outcome<Self> {
        let (campaign, rest) = arguments.split_first().ok_or("no campaign: outside --help names them")?;
        if campaign != "all" && !CAMPAIGNS.contains(&campaign.as_str()) {
            return Err(format!("unknown campaign {campaign}: expected all, {}", CAMPAIGNS.join(", ")));
        }
        let mut options = Self::default_of(campaign)?;
        let mut rest = rest.iter();
        while let Some(flag) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("{flag} needs a value"))?;
            options.set(flag, value)?;
        }
        Ok(options)
    }

    fn default_of(campaign: &str) -> Outcome<Self> {
        let here = std::env::current_exe().map_err(|fault| format!("the path of this program: {fault}"))?;
        let mut databases = vec!["sqlite"];
        databases.extend(std::env::var("HEADROOM_TEST_POSTGRES").is_ok().then_some("postgres"));
        Ok(Self {
            campaign: campaign.to_owned(),
            seed: 1,
            seconds: 600,
            databases,
            programs: here.parent().map(PathBuf::from).unwrap_or_default(),
            out: None,
            cycles: 10,
            sizes: vec![1_000, 10_000, 100_000, 140_000],
            clients: 200,
            rss_mib: 400,
            quota_ms: 1000.0,
            ratio: 0.8,
        })
    }

    fn set(&mut self, flag: &str, value: &str) -> Outcome<()> {
        let wrong = |_| format!("{flag} {value}: expected a number");
        match flag {
            "--seed" => self.seed = value.parse().map_err(wrong)?,
            "--seconds" => self.seconds = value.parse().map_err(wrong)?,
            "--cycles" => self.cycles = value.parse().map_err(wrong)?,
            "--clients" => self.clients = value.parse().map_err(wrong)?,
            "--rss-mib" => self.rss_mib = value.parse().map_err(wrong)?,
            "--quota-ms" => self.quota_ms = value.parse().map_err(|_| format!("{flag} {value}: expected a number"))?,
            "--ratio" => self.ratio = value.parse().map_err(|_| format!("{flag} {value}: expected a number"))?,
            "--sizes" => self.sizes = value.split(',').map(str::parse).collect::<Result<_, _>>().map_err(wrong)?,
            "--out" => self.out = Some(value.into()),
            "--programs" => {
                self.programs = std::fs::canonicalize(value).map_err(|fault| format!("--programs {value}: {fault}"))?;
            }
            "--database" => {
                self.databases = match value {
                    "sqlite" => vec!["sqlite"],
                    "postgres" => vec!["postgres"],
                    "both" => vec!["sqlite", "postgres"],
                    _ => return Err(format!("--database {value}: expected sqlite, postgres or both")),
                }
            }
            _ => return Err(format!("unknown option {flag}: outside --help names them")),
        }
        Ok(())
    }
}
