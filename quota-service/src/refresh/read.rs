//! Reads the inputs of a plan.

use super::cache::{Cache, Cached, CachedPanel};
use crate::core::Core;
use crate::engine::{EngineError, Order, Placed, SoldBy};
use crate::placed_by;
use crate::plan::{ClusterInputs, NoQuota, PoolInputs};
use crate::refresh::Renewals;
use crate::reservations;
use crate::settings;
use datasets::{Calendar, CalendarChoice, Panel, PanelBuilder};
use forecaster::Predict;
use placement::eta::{Ended, EtaState};
use placement::kept::Period;
use placement::{Eta, Known, PoolSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Cluster, Store, StoreError, StoredCalendar, UnspentOutcome};
use vocab::{
    HourDemand, HourStart, HpJob, MilliGpus, Node, PlacedBy, PoolId, PoolState, ReservedWindow, SeriesId, UnixSeconds,
    hp_gpus,
};

/// Beyond the lookback: a gap at its far end is filled from before it.
const MARGIN_HOURS: usize = vocab::HOURS_PER_WEEK as usize;

/// Inputs of a cluster.
pub enum ClusterKnown {
    /// With the pools whose tasks are placed here.
    Ready(ClusterInputs, BTreeMap<PoolId, Placed>),
    /// Its pools, and why they have no new quota.
    Without { pools: Vec<PoolId>, problem: String },
}

pub async fn cluster(
    renewals: &Renewals,
    cache: &mut Cache,
    cluster: &Cluster,
    now: UnixSeconds,
) -> Result<ClusterKnown, StoreError> {
    // First, since it may end an hour of which the panel is to know.
    renewals.engine.pass(&cluster.name).await.map_err(store_fault)?;
    let store = renewals.core.store.as_ref();
    let cached = cache.of(&cluster.name);
    cached.update_run(store, &cluster.name).await?;
    let nodes = store.nodes(&cluster.name).await?;
    let Ok(present) = now.hour() else {
        return Ok(ClusterKnown::Without { pools: Vec::new(), problem: format!("the clock shows {now}") });
    };
    let panel = panel(store, cached, cluster, present).await?;
    let pools = pools(store, cluster, panel.as_deref(), &nodes).await?;
    let without = |problem: String| ClusterKnown::Without { pools: pools.clone(), problem };
    let run = match (&cached.run, &cached.refused) {
        (Some(run), _) => run.clone(),
        (None, Some((id, why))) => return Ok(without(format!("{id} cannot serve: {why}"))),
        (None, None) => return Ok(without(NoQuota::NoRun.to_string())),
    };
    let Some(panel) = panel else { return Ok(without(NoQuota::NoUsage.to_string())) };
    let (mut inputs, mut placed) = (Vec::with_capacity(pools.len()), BTreeMap::new());
    for pool in pools {
        let windows = updated_windows(renewals, &pool, now).await?;
        let here = placed_here(renewals, &pool, now).await?;
        let mut pool_inputs = pool_inputs(&renewals.core, pool.clone(), here.as_deref(), &nodes, now, present).await?;
        pool_inputs.known.windows =
            here.as_ref().map_or_else(|| reservations::of_external(windows), |here| here.windows.clone());
        inputs.push(pool_inputs);
        placed.extend(here.map(|here| (pool, *here)));
    }
    let inputs = ClusterInputs {
        panel,
        run,
        calibrator: None,
        pools: inputs,
        now,
        virtual_time: renewals.core.clock.is_virtual(),
        remembered: cached.forecasts.take(),
    };
    Ok(ClusterKnown::Ready(inputs, placed))
}

/// The pools of a cluster: those with usage, a capacity or nodes.
async fn pools(
    store: &dyn Store,
    cluster: &Cluster,
    panel: Option<&Panel>,
    nodes: &[Node],
) -> Result<Vec<PoolId>, StoreError> {
    let mut pools: BTreeSet<PoolId> = nodes.iter().map(|node| node.pool.clone()).collect();
    pools.extend(store.capacities(&cluster.name).await?.into_iter().map(|row| row.pool));
    pools.extend(panel.iter().flat_map(|panel| panel.series()).map(|series| series.id().pool.clone()));
    Ok(pools.into_iter().collect())
}

/// The hours before the present one, as far back as the model looks; `None` without usage. Read again only when usage,
/// hour, calendar or lookback changed.
async fn panel(
    store: &dyn Store,
    cached: &mut Cached,
    cluster: &Cluster,
    present: HourStart,
) -> Result<Option<Arc<Panel>>, StoreError> {
    let usage_version = store.usage_version(&cluster.name).await?;
    let lookback = cached.run.as_ref().map_or(1, |run| run.trained.lookback_hours());
    let Some((first, last)) = store.measured_range(&cluster.name).await? else { return Ok(None) };
    let to = last.plus_hours(1).min(present);
    let from = to.plus_hours(-((lookback + MARGIN_HOURS) as i64)).max(first);
    let own = own_calendar(store, cluster).await?;
    let calendar_version = own.as_ref().map(|own| own.version);
    if let Some(known) = &cached.panel {
        let same_calendar = (&known.time_zone, &known.calendar) == (&cluster.time_zone, &cluster.calendar)
            && known.calendar_version == calendar_version;
        if same_calendar && (known.usage_version, known.from, known.to) == (usage_version, from, to) {
            return Ok(Some(known.panel.clone()));
        }
    }
    let days = own.as_ref().map(|own| own.days_csv.as_str());
    let calendar = Calendar::with_own(&cluster.time_zone, &cluster.calendar, days)
        .map_err(|fault| corrupt(cluster, fault.to_string()))?;
    warn_uncovered(cached, cluster, &calendar, from, present);
    let Some(panel) = load(store, cluster, calendar, from, to).await? else { return Ok(None) };
    let panel = Arc::new(panel);
    let (time_zone, calendar) = (cluster.time_zone.clone(), cluster.calendar.clone());
    let panel_of = panel.clone();
    cached.panel =
        Some(CachedPanel { usage_version, from, to, time_zone, calendar, calendar_version, panel: panel_of });
    Ok(Some(panel))
}

fn corrupt(cluster: &Cluster, reason: String) -> StoreError {
    StoreError::Corrupt { what: format!("cluster {}", cluster.name), reason }
}

/// The days that users brought along for the cluster's calendar, where it has such.
///
/// # Errors
/// The database does not answer, or the name of the calendar no longer parses.
pub async fn own_calendar(store: &dyn Store, cluster: &Cluster) -> Result<Option<StoredCalendar>, StoreError> {
    let choice = CalendarChoice::parse(&cluster.calendar).map_err(|fault| corrupt(cluster, fault.to_string()))?;
    match choice.own() {
        Some(name) => store.calendar(name).await,
        None => Ok(None),
    }
}

/// Logs once that hours lie beyond the years that the calendar knows, and again when that changes.
fn warn_uncovered(cached: &mut Cached, cluster: &Cluster, calendar: &Calendar, from: HourStart, present: HourStart) {
    let horizon = cached.run.as_ref().map_or(0, |run| i64::from(run.trained.horizon().get()));
    let warning = calendar.uncovered(from, present.plus_hours(horizon)).map(|uncovered| uncovered.to_string());
    if let Some(text) = warning.as_ref().filter(|_| cached.calendar_warning != warning) {
        tracing::warn!(cluster = %cluster.name, "{text}");
    }
    cached.calendar_warning = warning;
}

async fn load(
    store: &dyn Store,
    cluster: &Cluster,
    calendar: Calendar,
    from: HourStart,
    to: HourStart,
) -> Result<Option<Panel>, StoreError> {
    let mut builder = PanelBuilder::new(cluster.name.clone(), calendar, from, to);
    let mut fault = None;
    let sink = &mut |series: &SeriesId, hour: HourStart, demand: HourDemand| {
        if let Err(refused) = builder.push_demand(series, hour, demand) {
            fault.get_or_insert(refused);
        }
    };
    store.load_usage(&cluster.name, from, to, sink).await?;
    if let Some(refused) = fault {
        return Err(corrupt(cluster, refused.to_string()));
    }
    Ok(builder.finish_measured().ok())
}

async fn pool_inputs(
    core: &Core,
    id: PoolId,
    placed: Option<&Placed>,
    nodes: &[Node],
    now: UnixSeconds,
    present: HourStart,
) -> Result<PoolInputs, StoreError> {
    let store = core.store.as_ref();
    let settings = settings::load(store, &id).await?;
    let Now { state, hp_demand, hp_jobs } = pool_now(store, &id, placed, settings.placed_by, now).await?;
    let state = of_its_time(core, state, &settings.pool, now);
    let known = known(store, &id, state, nodes, present).await?;
    let lately = now.plus_s(-settings.pool.outcome_window_s);
    let outcomes = store.eta_outcomes(&id, lately, settings.pool.min_outcomes).await?;
    let unspent = outcomes.unspent.iter().map(|one| (one.id, ended(one)));
    let eta = eta(core, &id, &settings.pool).await?;
    let (unspent, newest_outcome) = (unspent.collect(), outcomes.newest_ended_at);
    let overrides = store.overrides(Some(&id), now, false).await?;
    let is_placed_here = placed.is_some();
    Ok(PoolInputs {
        settings,
        known,
        eta,
        unspent,
        newest_outcome,
        is_placed_here,
        hp_demand,
        hp_jobs,
        learned: None,
        overrides,
        id,
    })
}

/// Eta as it stands: since its last move, or, before the first, since the first quota that it was a part of, whichever service
/// computed it.
async fn eta(core: &Core, id: &PoolId, settings: &PoolSettings) -> Result<EtaState, StoreError> {
    if let Some(record) = core.store.eta(id).await? {
        return Ok(EtaState { eta: Eta::from_micro(record.eta_micro), moved_at: record.moved_at });
    }
    let first = core.store.first_quota_at(id, settings.longest_hours()).await?;
    let moved_at = first.map_or(core.started_at, |first| first.min(core.started_at));
    Ok(EtaState { eta: settings.eta_start, moved_at })
}

/// The side that places a pool, and its capacity as far as it is known, where no quota is computed.
///
/// # Errors
/// The database does not answer.
pub async fn side_and_capacity(core: &Core, id: &PoolId) -> Result<(Option<PlacedBy>, Option<MilliGpus>), StoreError> {
    let (store, now) = (core.store.as_ref(), core.clock.now());
    let side = store.placement(id).await?.map(|placement| placement.placed_by);
    let Now { mut state, .. } = pool_now(store, id, None, side, now).await?;
    if core.clock.is_virtual() {
        state = of_its_time(core, state, &settings::load(store, id).await?.pool, now);
    }
    let Ok(present) = now.hour() else { return Ok((side, None)) };
    let known = known(store, id, state, &store.pool_nodes(id).await?, present).await?;
    Ok((side, known.capacity().map(|(capacity, _)| capacity)))
}

/// A state does not belong to old data: under a virtual clock one that is not of its time counts as none.
fn of_its_time(core: &Core, state: Option<PoolState>, settings: &PoolSettings, now: UnixSeconds) -> Option<PoolState> {
    let is_of_its_time = |state: &PoolState| now.since_s(state.as_of).abs() <= settings.state_fresh_s;
    state.filter(|state| !core.clock.is_virtual() || is_of_its_time(state))
}

/// Knowledge of a pool beside its demand and its windows: its state, the nodes among `nodes` that are its own, and the capacity table.
async fn known(
    store: &dyn Store,
    id: &PoolId,
    state: Option<PoolState>,
    nodes: &[Node],
    present: HourStart,
) -> Result<Known, StoreError> {
    let mine = nodes.iter().filter(|node| node.pool == *id && !node.drains).map(Node::capacity);
    Ok(Known {
        state,
        node_capacity: mine.reduce(MilliGpus::saturating_add),
        table_capacity: store.capacity_at(id, present).await?.map(|row| row.capacity),
        ..Known::default()
    })
}

/// A pool at this moment, as far as it is known.
struct Now {
    state: Option<PoolState>,
    hp_demand: Option<MilliGpus>,
    hp_jobs: Option<Vec<HpJob>>,
}

/// As the pool is placed here, else as a scheduler has reported it. A pool of ours never listens to reports.
async fn pool_now(
    store: &dyn Store,
    id: &PoolId,
    placed: Option<&Placed>,
    side: Option<PlacedBy>,
    now: UnixSeconds,
) -> Result<Now, StoreError> {
    if let Some(placed) = placed {
        // It is the state of this moment, also where the clock has jumped back since the last decision.
        let state = Some(PoolState { as_of: now, ..placed.state.clone() });
        return Ok(Now { state, hp_demand: Some(placed.hp_demand), hp_jobs: Some(placed.hp_jobs.clone()) });
    }
    if side == Some(PlacedBy::Headroom) {
        return Ok(Now { state: None, hp_demand: None, hp_jobs: None });
    }
    let received = store.pool_state(id).await?;
    let (state, hp_jobs) = received.map_or((None, None), |received| (Some(received.state), received.hp_jobs));
    // A state that is too old gives no quota, and so no use of its jobs.
    Ok(Now { state, hp_demand: hp_jobs.as_deref().map(hp_gpus), hp_jobs })
}

fn ended(one: &UnspentOutcome) -> Ended {
    let (hours, at) = (one.guarantee_hours, one.ended_at);
    Ended {
        number: one.id.number(),
        at,
        hours,
        period: Period::reported(hours, at, one.began_at, one.gpus, one.broken),
    }
}

/// The windows that are sold ahead. The writer of the pool gets them, where it runs.
async fn updated_windows(
    renewals: &Renewals,
    pool: &PoolId,
    now: UnixSeconds,
) -> Result<Vec<ReservedWindow>, StoreError> {
    // A window that is being sold is not in the store yet, and must not be forgotten.
    let _turn = renewals.core.reservations.lock().await;
    let windows = reservations::ahead(renewals.core.store.as_ref(), pool, now).await?;
    if !renewals.core.clock.is_virtual() {
        let order = Order::Windows { windows: windows.clone(), by: SoldBy::Store };
        renewals.engine.ask_if_running(pool, order).await.map_err(store_fault)?;
    }
    Ok(windows)
}

/// The demand of the last weeks of a cluster; `None` without any.
///
/// # Errors
/// The database does not answer, or what it holds is damaged.
pub async fn history_of(
    store: &dyn Store,
    pool: &PoolId,
    weeks: i64,
    now: UnixSeconds,
) -> Result<Option<Panel>, StoreError> {
    let Some(cluster) = store.cluster(&pool.cluster).await? else { return Ok(None) };
    let (Ok(present), Some((first, last))) = (now.hour(), store.measured_range(&cluster.name).await?) else {
        return Ok(None);
    };
    let to = last.plus_hours(1).min(present);
    let from = to.plus_hours(-weeks * vocab::HOURS_PER_WEEK).max(first);
    let calendar =
        Calendar::parse(&cluster.time_zone, "weekdays").map_err(|fault| corrupt(&cluster, fault.to_string()))?;
    load(store, &cluster, calendar, from, to).await
}

/// The pool as the writer has it, where Headroom places it.
async fn placed_here(renewals: &Renewals, pool: &PoolId, now: UnixSeconds) -> Result<Option<Box<Placed>>, StoreError> {
    let store = renewals.core.store.as_ref();
    let placed_by = store.placement(pool).await?.map(|placement| placement.placed_by);
    if placed_by == Some(PlacedBy::External) || renewals.core.clock.is_virtual() {
        return Ok(None);
    }
    let begins = placed_by == Some(PlacedBy::Headroom) && !renewals.engine.is_running(pool);
    if begins && let Err(fault) = renewals.engine.ask(pool, Order::Pass).await {
        return if matches!(fault, EngineError::UnknownPool) { Ok(None) } else { Err(store_fault(fault)) };
    }
    let here = renewals.engine.state(pool).await.map_err(store_fault)?;
    if here.is_none() || placed_by.is_some() {
        return Ok(here);
    }
    // Its tasks ended so long ago that no row shows them. Nothing was reported of it: it is ours still.
    if store.pool_state(pool).await?.is_some() {
        return Ok(None);
    }
    let placement = store.decide_placement(pool, PlacedBy::Headroom, &placed_by::by_journal(pool, now)).await?;
    let is_ours = placement.placed_by == PlacedBy::Headroom;
    renewals.engine.ask_if_running(pool, Order::PlacedBy(Some(placement))).await.map_err(store_fault)?;
    Ok(here.filter(|_| is_ours))
}

fn store_fault(fault: EngineError) -> StoreError {
    match fault {
        EngineError::Store(fault) => fault,
        EngineError::Turn(fault) => fault.again(),
        other => StoreError::Unavailable { reason: other.to_string() },
    }
}
