//! Attacks on the running programs from outside. What they are like inside is unknown here: no crate of theirs is used.

mod campaigns;
mod http;
mod options;
mod places;
mod random;
mod report;
mod service;

use options::{CAMPAIGNS, HELP, Options};
use report::Report;
use std::process::ExitCode;

/// The fault, in words: the campaign cannot be carried out.
pub type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(fault) => {
            eprintln!("outside: {fault}");
            return ExitCode::from(2);
        }
    };
    let all = options.campaign == "all";
    let campaigns = CAMPAIGNS.into_iter().filter(|name| all || *name == options.campaign);
    let mut worst = 0;
    for campaign in campaigns {
        let options = Options { campaign: campaign.to_owned(), ..options.clone() };
        for database in &options.databases {
            worst = worst.max(carry_out(&options, database));
        }
    }
    ExitCode::from(worst)
}

/// The exit code of one campaign on one database.
fn carry_out(options: &Options, database: &'static str) -> u8 {
    let report = Report::default();
    let carried_out = campaigns::run(options, database, &report);
    let published = report.publish(options, database);
    if let Err(fault) = carried_out.and(published) {
        eprintln!("outside: {} on {database}: {fault}", options.campaign);
        return 3;
    }
    u8::from(report.has_violations())
}
