//! The requests of one pool.

use crate::error::ClientError;
use crate::events::Events;
use crate::exchange::{Asked, Client};
use crate::quotas::Quotas;
use crate::url::{Path, encoded, segment};
use hyper::Method;
use wire::{
    Explanation, ForecastAnswer, NodeBody, NodeList, NodeViews, OutcomeBatch, OutcomeReceipt, PoolList, PoolStateBody,
    PoolStateReceipt, PriceList, PriceQuestion, PromiseReport, QuotaAnswer, QuotaHistory, ReservationBody,
    ReservationList, ReservationRequest, SettingsBody, ShareList, StartAnswer, StartQuestion, StatementAnswer,
    TaskAnswer, TaskBody, TaskExplanation, TaskList, TaskStatusBody, UsageBatch, UsageReceipt, WhatIfAnswer,
};

/// A pool of a service.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(crate) client: Client,
    cluster: String,
    gpu_model: String,
}

/// The changes of a what-if question; an absent one stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WhatIf {
    /// GPUs added to the capacity; negative ones are taken away.
    pub capacity_change_gpus: Option<f64>,
    /// GPUs added to HP demand, now and in every hour ahead; negative ones are taken away.
    pub demand_change_gpus: Option<f64>,
    /// p.
    pub guarantee_rate: Option<f64>,
    /// η.
    pub eta: Option<f64>,
}

/// The statement that is asked for; an absent value leaves nothing out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementOf {
    /// `YYYY-MM`; the present month without it.
    pub month: Option<String>,
    /// One row for each day, not one for the month.
    pub daily: bool,
    /// Only the pools of this cluster.
    pub cluster: Option<String>,
    /// Only the pools of this GPU model.
    pub gpu_model: Option<String>,
    /// Only this organization.
    pub organization: Option<String>,
}

/// The requests that name their pools in the body, or none.
///
/// # Errors
/// Each as [`Client::get`].
#[expect(clippy::missing_errors_doc, reason = "one sentence for all of them")]
impl Client {
    /// The requests of a pool.
    #[must_use]
    pub fn pool(&self, cluster: &str, gpu_model: &str) -> Pool {
        Pool { client: self.clone(), cluster: cluster.to_owned(), gpu_model: gpu_model.to_owned() }
    }

    /// `GET /v1/pools`: every pool that the token may see.
    pub async fn pools(&self) -> Result<PoolList, ClientError> {
        self.get("/v1/pools").await
    }

    /// `POST /v1/usage`: demand of past hours. A row replaces an earlier one, so that a repeated batch changes nothing.
    pub async fn append_usage(&self, batch: &UsageBatch) -> Result<UsageReceipt, ClientError> {
        self.send(Method::POST, "/v1/usage", batch).await
    }

    /// `POST /v1/outcomes`: ended guarantees. Each counts once by its event id.
    pub async fn record_outcomes(&self, batch: &OutcomeBatch) -> Result<OutcomeReceipt, ClientError> {
        self.send(Method::POST, "/v1/outcomes", batch).await
    }

    /// `POST /v1/tasks`. The same task again is answered as it stands.
    pub async fn submit(&self, task: &TaskBody) -> Result<TaskAnswer, ClientError> {
        self.send(Method::POST, "/v1/tasks", task).await
    }

    /// `POST /v1/tasks/dry-run`: the decision on a submission now; nothing changes.
    pub async fn dry_run(&self, task: &TaskBody) -> Result<TaskAnswer, ClientError> {
        self.send(Method::POST, "/v1/tasks/dry-run", task).await
    }

    /// `POST /v1/tasks/eta`: when a task would start that is not submitted; nothing changes.
    pub async fn eta(&self, task: &StartQuestion) -> Result<StartAnswer, ClientError> {
        self.send(Method::POST, "/v1/tasks/eta", task).await
    }

    /// `POST /v1/tasks/prices`: what each class and guarantee costs in waiting, and which of them ends in time; nothing changes.
    pub async fn prices(&self, task: &PriceQuestion) -> Result<PriceList, ClientError> {
        self.send(Method::POST, "/v1/tasks/prices", task).await
    }

    /// `GET /v1/statement`: where the GPU time of a month went, and its price.
    pub async fn statement(&self, of: &StatementOf) -> Result<StatementAnswer, ClientError> {
        let path = Path::new("/v1/statement")
            .with_some("month", of.month.as_deref())
            .with_some("by", of.daily.then_some("day"))
            .with_some("cluster", of.cluster.as_deref())
            .with_some("gpu_model", of.gpu_model.as_deref())
            .with_some("organization", of.organization.as_deref());
        self.get(path.as_str()).await
    }

    /// `POST /v1/reservations`: sells windows of a pool ahead. The same reservation again is answered as it is stored.
    pub async fn reserve(&self, reservation: &ReservationRequest) -> Result<ReservationBody, ClientError> {
        self.send(Method::POST, "/v1/reservations", reservation).await
    }

    /// `POST /v1/reservations?dry_run=true`: the windows with their probability; nothing is stored.
    pub async fn dry_run_reservation(&self, reservation: &ReservationRequest) -> Result<ReservationBody, ClientError> {
        self.send(Method::POST, "/v1/reservations?dry_run=true", reservation).await
    }

    /// `GET /v1/reservations/{id}`.
    pub async fn reservation(&self, id: u64) -> Result<ReservationBody, ClientError> {
        self.get(&format!("/v1/reservations/{id}")).await
    }

    /// `DELETE /v1/reservations/{id}`: withdraws a reservation. A second withdrawal changes nothing.
    pub async fn withdraw(&self, id: u64) -> Result<(), ClientError> {
        let path = format!("/v1/reservations/{id}");
        self.ask(&Asked { method: Method::DELETE, ..Asked::get(&path) }).await.map(drop)
    }

    /// `GET /v1/nodes` of a cluster.
    pub async fn nodes(&self, cluster: &str) -> Result<NodeList, ClientError> {
        self.get(Path::new("/v1/nodes").with("cluster", cluster).as_str()).await
    }

    /// `PUT /v1/nodes/{id}`.
    pub async fn put_node(&self, id: &str, node: &NodeBody) -> Result<NodeBody, ClientError> {
        self.send(Method::PUT, &format!("/v1/nodes/{}", segment(id)?), node).await
    }
}

/// # Errors
/// Each as [`Client::get`].
#[expect(clippy::missing_errors_doc, reason = "one sentence for all of them")]
impl Pool {
    fn query(&self, path: impl Into<String>) -> Path {
        Path::new(path).with("cluster", &self.cluster).with("gpu_model", &self.gpu_model)
    }

    fn of_task(&self, id: &str, what: &str) -> Result<Path, ClientError> {
        Ok(self.query(format!("/v1/tasks/{}{what}", segment(id)?)))
    }

    fn of_pool(&self, what: &str) -> String {
        format!("/v1/pools/{}:{}{what}", encoded(&self.cluster), encoded(&self.gpu_model))
    }

    pub(crate) fn quota_path(&self, hours: u8) -> Path {
        self.query("/v1/quota").with("hours", hours)
    }

    pub(crate) fn events_path(&self) -> Path {
        self.query("/v1/events")
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The GPU model.
    #[must_use]
    pub fn gpu_model(&self) -> &str {
        &self.gpu_model
    }

    /// `GET /v1/quota`: GPUs that spot tasks with a guarantee of at least so many hours may hold.
    pub async fn quota(&self, hours: u8) -> Result<QuotaAnswer, ClientError> {
        self.client.get(self.quota_path(hours).as_str()).await
    }

    /// The quota, and each new one.
    #[must_use]
    pub fn quotas(&self, hours: u8) -> Quotas {
        Quotas::new(self.clone(), hours)
    }

    /// `GET /v1/quota/explain`: every number behind a quota.
    pub async fn explain(&self, hours: u8) -> Result<Explanation, ClientError> {
        self.client.get(self.query("/v1/quota/explain").with("hours", hours).as_str()).await
    }

    /// `GET /v1/quota/history`, newest first; `limit` quotas, 288 without it.
    pub async fn history(&self, hours: u8, limit: Option<u32>) -> Result<QuotaHistory, ClientError> {
        let path = self.query("/v1/quota/history").with("hours", hours).with_some("limit", limit);
        self.client.get(path.as_str()).await
    }

    /// `GET /v1/quota/what-if`.
    pub async fn what_if(&self, hours: u8, changes: &WhatIf) -> Result<WhatIfAnswer, ClientError> {
        let path = self
            .query("/v1/quota/what-if")
            .with("hours", hours)
            .with_some("capacity_change_gpus", changes.capacity_change_gpus)
            .with_some("demand_change_gpus", changes.demand_change_gpus)
            .with_some("guarantee_rate", changes.guarantee_rate)
            .with_some("eta", changes.eta);
        self.client.get(path.as_str()).await
    }

    /// `GET /v1/forecast`, of one organization or of all.
    pub async fn forecast(&self, organization: Option<&str>) -> Result<ForecastAnswer, ClientError> {
        let path = self.query("/v1/forecast").with_some("organization", organization);
        self.client.get(path.as_str()).await
    }

    /// `GET /v1/promises` of so many days; 28 without a number.
    pub async fn promises(&self, days: Option<u32>) -> Result<PromiseReport, ClientError> {
        self.client.get(self.query("/v1/promises").with_some("days", days).as_str()).await
    }

    /// `GET /v1/tasks`: waiting or running ones, at most `limit`, 100 without it.
    pub async fn tasks(&self, status: TaskStatusBody, limit: Option<u32>) -> Result<TaskList, ClientError> {
        let path = self.query("/v1/tasks").with("status", status).with_some("limit", limit);
        self.client.get(path.as_str()).await
    }

    /// `GET /v1/tasks/{id}`.
    pub async fn task(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.client.get(self.of_task(id, "")?.as_str()).await
    }

    /// `GET /v1/tasks/{id}/explain`.
    pub async fn explain_task(&self, id: &str) -> Result<TaskExplanation, ClientError> {
        self.client.get(self.of_task(id, "/explain")?.as_str()).await
    }

    /// `GET /v1/tasks/{id}/eta`: when a waiting task will start, or a running one has started.
    pub async fn task_eta(&self, id: &str) -> Result<StartAnswer, ClientError> {
        self.client.get(self.of_task(id, "/eta")?.as_str()).await
    }

    /// `DELETE /v1/tasks/{id}`.
    pub async fn delete(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.client.call(Method::DELETE, self.of_task(id, "")?.as_str()).await
    }

    /// `POST /v1/tasks/{id}/finish`.
    pub async fn finish(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.client.call(Method::POST, self.of_task(id, "/finish")?.as_str()).await
    }

    /// `POST /v1/tasks/{id}/checkpoint`.
    pub async fn checkpoint(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.client.call(Method::POST, self.of_task(id, "/checkpoint")?.as_str()).await
    }

    /// `GET /v1/events`: what happens to tasks, from now on, or after the event with the id `after`.
    #[must_use]
    pub fn events(&self, after: Option<String>) -> Events {
        Events::new(self.clone(), after)
    }

    /// `GET /v1/reservations`, by number; with `past`, those that are over or withdrawn, too.
    pub async fn reservations(&self, past: bool) -> Result<ReservationList, ClientError> {
        self.client.get(self.query("/v1/reservations").with_some("past", past.then_some(true)).as_str()).await
    }

    /// `GET /v1/reservations.ics`: the windows of the next 12 weeks as iCalendar (RFC 5545); with `past`, those that are over, too.
    pub async fn reservations_ics(&self, past: bool) -> Result<String, ClientError> {
        let path = self.query("/v1/reservations.ics").with_some("past", past.then_some(true));
        self.client.get_text(path.as_str(), "text/calendar").await
    }

    /// `GET /v1/pools/{id}/state`.
    pub async fn state(&self) -> Result<PoolStateBody, ClientError> {
        self.client.get(&self.of_pool("/state")).await
    }

    /// `PUT /v1/pools/{id}/state`: what an external scheduler holds.
    pub async fn put_state(&self, state: &PoolStateBody) -> Result<PoolStateReceipt, ClientError> {
        self.client.send(Method::PUT, &self.of_pool("/state"), state).await
    }

    /// `GET /v1/pools/{id}/settings`.
    pub async fn settings(&self) -> Result<SettingsBody, ClientError> {
        self.client.get(&self.of_pool("/settings")).await
    }

    /// `PUT /v1/pools/{id}/settings`. A change that is sent again after it was made is refused (409), since its version is older.
    pub async fn put_settings(&self, settings: &SettingsBody) -> Result<SettingsBody, ClientError> {
        self.client.send(Method::PUT, &self.of_pool("/settings"), settings).await
    }

    /// `GET /v1/pools/{id}/nodes` with their hours.
    pub async fn node_views(&self, hours: Option<u32>) -> Result<NodeViews, ClientError> {
        self.client.get(Path::new(self.of_pool("/nodes")).with_some("hours", hours).as_str()).await
    }

    /// `GET /v1/pools/{id}/shares`: organizations under fair shares of spot.
    pub async fn shares(&self) -> Result<ShareList, ClientError> {
        self.client.get(&self.of_pool("/shares")).await
    }
}
