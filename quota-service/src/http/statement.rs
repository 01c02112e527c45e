//! Statements: where GPU time went, what became of promises, and what it costs.

use super::ApiError;
use super::access::Who;
use super::extract::Query;
use crate::core::Core;
use crate::engine::{Accounted, Engine, EngineError, ReadAccounts};
use crate::prices;
use crate::quotas::Quotas;
use accounts::{Day, DayAccounts, Month, Statement};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{AccountedDay, StoreError};
use utoipa::IntoParams;
use vocab::{ClusterName, GpuModel, Organization, PlacedBy, PoolId, UnixSeconds};
use wire::{DayRecord, Problem, StatementAnswer, StatementSource, StatementTable};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StatementQuery {
    /// `YYYY-MM`, of UTC; the present month if not given.
    month: Option<String>,
    /// One row for the whole `month`, if not given, or one for each `day`.
    by: Option<String>,
    /// Only the pools of this cluster.
    cluster: Option<String>,
    /// Only the pools of this GPU model.
    gpu_model: Option<String>,
    /// Only this organization, without the rows of pools.
    organization: Option<String>,
    /// `json`, if not given, `csv`, or `opencost`: CSV with the columns of OpenCost, by day.
    format: Option<String>,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv(StatementTable),
}

impl StatementQuery {
    fn month(&self, now: UnixSeconds) -> Result<Month, ApiError> {
        let Some(text) = &self.month else { return Ok(Month::of(Day::of(now))) };
        Month::parse(text).map_err(|fault| ApiError::Query { detail: format!("month: {fault}") })
    }

    fn form(&self) -> Result<Form, ApiError> {
        Ok(match self.format.as_deref() {
            None | Some("json") => Form::Json,
            Some("csv") => Form::Csv(StatementTable::Statement),
            Some("opencost") => Form::Csv(StatementTable::OpenCost),
            Some(other) => {
                let detail = format!("format: invalid format {other:?}: write json, csv or opencost");
                return Err(ApiError::Query { detail });
            }
        })
    }

    fn is_daily(&self, form: Form) -> Result<bool, ApiError> {
        match self.by.as_deref() {
            None => Ok(form == Form::Csv(StatementTable::OpenCost)),
            Some("month") if form == Form::Csv(StatementTable::OpenCost) => Err(ApiError::Query {
                detail: "by: rows of opencost are by day: write day, or leave it out".to_owned(),
            }),
            Some("month") => Ok(false),
            Some("day") => Ok(true),
            Some(other) => Err(ApiError::Query { detail: format!("by: invalid by {other:?}: write day or month") }),
        }
    }

    fn has(&self, pool: &PoolId) -> bool {
        let is = |asked: &Option<String>, name: &str| asked.as_ref().is_none_or(|asked| asked == name);
        is(&self.cluster, pool.cluster.as_str()) && is(&self.gpu_model, pool.gpu_model.as_str())
    }

    /// Refuses a pool that is named and out of the scope of the token, whether it exists or not.
    fn check_scope(&self, who: &Who) -> Result<(), ApiError> {
        let (Some(cluster), Some(gpu_model)) = (&self.cluster, &self.gpu_model) else { return Ok(()) };
        let (Ok(cluster), Ok(gpu_model)) = (ClusterName::parse(cluster), GpuModel::parse(gpu_model)) else {
            return Ok(());
        };
        who.of_pool(&PoolId { cluster, gpu_model })
    }

    /// Refuses names that no pool has which the token may see.
    fn check_pool(&self, quotas: &Quotas, who: &Who) -> Result<(), ApiError> {
        let published = quotas.published.load();
        let known: Vec<&PoolId> = published.pools().map(|pool| &pool.id).filter(|pool| who.0.may_pool(pool)).collect();
        if (self.cluster.is_none() && self.gpu_model.is_none()) || known.iter().any(|pool| self.has(pool)) {
            return Ok(());
        }
        let [cluster, gpu_model] = [&self.cluster, &self.gpu_model].map(|name| name.as_deref().unwrap_or("*"));
        let known = known.iter().map(ToString::to_string).collect();
        Err(ApiError::UnknownPool { asked: format!("{cluster}:{gpu_model}"), known })
    }

    fn organization(&self) -> Result<Option<Organization>, ApiError> {
        let parsed = self.organization.as_deref().map(Organization::parse).transpose();
        parsed.map_err(|fault| ApiError::Query { detail: format!("organization: {fault}") })
    }
}

/// The statement of a month: sold, kept, broken, idle and lost GPU time, and its price
///
/// Of pools whose tasks Headroom places. GPU time is exact: of each pool, what tasks held + idle + drained is the capacity. Days are those
/// of UTC. A broken promise is counted on the day on which it broke, a kept one on the day on which it ended.
#[utoipa::path(get, path = "/v1/statement", tag = "quota", params(StatementQuery), responses(
    (status = 200, description = "By pool, and by pool and organization; with `format=csv` or `format=opencost` as text/csv",
        content((StatementAnswer = "application/json"), (String = "text/csv"))),
    (status = 400, description = "The query is invalid", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "No pool of this name", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "A virtual clock runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The database does not answer", body = Problem, content_type = "application/problem+json"),
))]
pub async fn statement(
    State(core): State<Arc<Core>>,
    State(engine): State<Arc<Engine>>,
    State(quotas): State<Arc<Quotas>>,
    who: Who,
    Query(query): Query<StatementQuery>,
) -> Result<Response, ApiError> {
    if core.clock.is_virtual() {
        return Err(ApiError::VirtualClock);
    }
    let now = core.clock.now();
    let (month, form, organization) = (query.month(now)?, query.form()?, query.organization()?);
    let daily = query.is_daily(form)?;
    query.check_scope(&who)?;
    // 1. Read: days in the memory of writers, then those that are stored. A day that ends meanwhile is in one of them.
    let mut present = Vec::new();
    for placed in core.store.placed_pools().await? {
        if query.has(&placed.pool) && who.0.may_pool(&placed.pool) && is_ours(&core, &placed.pool).await? {
            present.push(read_present(&engine, placed.pool).await?);
        }
    }
    let mut days = stored(&core, &query, &who, month).await?;
    let sources: Vec<_> = present.into_iter().map(|present| present.add_to(&mut days, month)).collect();
    if days.is_empty() && sources.is_empty() {
        query.check_pool(&quotas, &who)?;
    }
    // 2. Sum, and price.
    let prices = core.config.prices_file.get().map(prices::read).transpose();
    let prices = prices.map_err(|why| no_prices(&why))?;
    let currency = prices.as_ref().map(|prices| prices.currency.clone());
    let mut statement = Statement::of(&days, &prices.unwrap_or_default(), daily);
    if let Some(organization) = &organization {
        statement = statement.of_organization(organization);
    }
    if who.0.organization().is_some() {
        // The preemptors of its tasks are other organizations.
        statement.preemptions.clear();
    }
    // 3. Answer.
    let [from, to] = [month.from(), month.to()].map(|day| day.begin().to_string());
    let answer = StatementAnswer { sources, ..StatementAnswer::of(&statement, from, to, currency) };
    Ok(match form {
        Form::Json => Json(answer).into_response(),
        Form::Csv(table) => ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], answer.to_csv(table)).into_response(),
    })
}

/// The file was good at the start of the service.
fn no_prices(why: &str) -> ApiError {
    let (kind, code) = ("/problems/bad-prices".to_owned(), "bad-prices".to_owned());
    let detail = format!("prices_file: {why}: correct the file, and retry");
    let title = "The file of prices cannot be read".to_owned();
    let problem =
        Problem { kind, title, status: 503, detail, code, known: Vec::new(), errors: Vec::new(), retry_after_s: None };
    ApiError::Problem(Box::new(problem))
}

async fn is_ours(core: &Core, pool: &PoolId) -> Result<bool, StoreError> {
    let placement = core.store.placement(pool).await?;
    Ok(placement.is_some_and(|placement| placement.placed_by == PlacedBy::Headroom))
}

type Days = BTreeMap<(PoolId, Day), DayAccounts>;

async fn stored(core: &Core, query: &StatementQuery, who: &Who, month: Month) -> Result<Days, StoreError> {
    let read = core.store.statement_days(month.from().begin(), month.to().begin()).await?;
    let wanted = read.into_iter().filter(|(pool, _)| query.has(pool) && who.0.may_pool(pool));
    wanted.map(|(pool, of_day)| Ok(((pool.clone(), Day::of(of_day.day)), accounts_of(&pool, &of_day)?))).collect()
}

fn accounts_of(pool: &PoolId, of_day: &AccountedDay) -> Result<DayAccounts, StoreError> {
    let record = wire::from_json::<DayRecord>(&of_day.accounts_json).map_err(|fault| fault.to_string());
    let accounts = record.and_then(|record| DayAccounts::try_from(&record).map_err(|fault| fault.to_string()));
    let day = Day::of(of_day.day);
    accounts.map_err(|reason| StoreError::Corrupt { what: format!("the accounts of {pool} on {day}"), reason })
}

/// The days of a pool that are in memory here.
struct Present {
    pool: PoolId,
    accounted: Accounted,
    /// Why there are none.
    missing: Option<String>,
}

async fn read_present(engine: &Engine, pool: PoolId) -> Result<Present, EngineError> {
    let (accounted, missing) = match engine.ask(&pool, ReadAccounts).await {
        Ok(accounted) => (accounted, None),
        Err(EngineError::Elsewhere(leader)) => {
            let holder = leader.map_or_else(|| "none at this moment".to_owned(), |leader| leader.holder);
            (Accounted::default(), Some(format!("the leader of the cluster has the days that are not over: {holder}")))
        }
        Err(fault) => return Err(fault),
    };
    Ok(Present { pool, accounted, missing })
}

impl Present {
    /// Adds the days of a month to those that are stored; answers up to when the accounts of the pool reach.
    fn add_to(self, days: &mut Days, month: Month) -> StatementSource {
        let Self { pool, accounted, missing } = self;
        let of_month = accounted.days.into_iter().filter(|(day, _)| (month.from()..month.to()).contains(day));
        days.extend(of_month.map(|(day, accounts)| ((pool.clone(), day), accounts)));
        let last = days.range((pool.clone(), month.from())..(pool.clone(), month.to())).next_back();
        let stored_until = last.map_or(month.from(), |((_, day), _)| day.next()).begin();
        let until = accounted.until.unwrap_or(stored_until).min(month.to().begin()).max(month.from().begin());
        StatementSource {
            cluster: pool.cluster.to_string(),
            gpu_model: pool.gpu_model.to_string(),
            until: until.to_string(),
            missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(by: Option<&str>, format: Option<&str>) -> StatementQuery {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (month, cluster, gpu_model, organization) = (None, None, None, None);
        StatementQuery { month, by: text(by), cluster, gpu_model, organization, format: text(format) }
    }

    #[test]
    fn rows_of_opencost_are_by_day_and_others_by_month_unless_asked() {
        let daily = |by, format| {
            let query = query(by, format);
            query.form().and_then(|form| query.is_daily(form)).map_err(|fault| fault.problem().detail)
        };
        assert_eq!((daily(None, None), daily(Some("day"), None)), (Ok(false), Ok(true)));
        assert_eq!((daily(None, Some("opencost")), daily(Some("day"), Some("csv"))), (Ok(true), Ok(true)));
        assert!(daily(Some("month"), Some("opencost")).unwrap_err().contains("rows of opencost are by day"));
        assert!(daily(Some("week"), None).unwrap_err().contains("write day or month"));
        assert!(daily(None, Some("xml")).unwrap_err().contains("write json, csv or opencost"));
    }

    #[test]
    fn the_month_is_the_present_one_unless_asked() {
        let now = UnixSeconds::new(1_764_072_000);
        assert_eq!(query(None, None).month(now).unwrap().to_string(), "2025-11");
        let asked = StatementQuery { month: Some("2025-13".to_owned()), ..query(None, None) };
        assert!(asked.month(now).unwrap_err().problem().detail.contains("expected YYYY-MM"));
    }
}
