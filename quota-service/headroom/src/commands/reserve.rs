//! `headroom reserve`.

use super::reservations;
use crate::args::ReserveFlags;
use crate::config::Config;
use crate::{failure, pool};
use command_line::{Exit, Failure, print_json, say};
use headroom_client::{Client, Pool};
use wire::{RepeatsBody, ReservationRequest, WeekdayBody};

pub async fn run(client: &Client, config: &Config, flags: ReserveFlags, json: bool) -> Result<(), Failure> {
    let dry_run = flags.dry_run;
    let request = request(&pool::chosen(client, config).await?, config, flags)?;
    let answered = if dry_run { client.dry_run_reservation(&request).await } else { client.reserve(&request).await };
    let answer = answered.map_err(|fault| failure::of(&fault))?;
    if json {
        print_json(&answer);
        return Ok(());
    }
    reservations::lines(&answer).iter().for_each(say);
    if dry_run {
        say("nothing is stored");
    }
    Ok(())
}

fn request(pool: &Pool, config: &Config, flags: ReserveFlags) -> Result<ReservationRequest, Failure> {
    let organization = flags.organization.or_else(|| Some(config.default_organization.clone()));
    let organization = organization.filter(|name| !name.is_empty()).ok_or_else(|| {
        Failure::new(Exit::Usage, "no organization: add --organization NAME, or set default_organization")
    })?;
    let known = vocab::Weekday::ALL.map(WeekdayBody::from);
    let day = |word: &String| known.into_iter().find(|day| day.as_str().eq_ignore_ascii_case(word));
    let days: Vec<WeekdayBody> = flags.days.iter().filter_map(day).collect();
    let repeats = (!days.is_empty()).then_some(RepeatsBody { days, until: flags.until });
    Ok(ReservationRequest {
        cluster: pool.cluster().to_owned(),
        gpu_model: pool.gpu_model().to_owned(),
        organization,
        gpus: flags.gpus,
        from: flags.from,
        to: flags.to,
        repeats,
    })
}
