//! Traces by OpenTelemetry: the spans, their traces, and their collector.
//!
//! A span is one of `tracing`, of a target of its own, which the log leaves out. Without a collector no subscriber takes that target,
//! and a span costs the look at a flag. Quotas, health checks and scrapes have none at all.

mod collector;

use crate::config::Config;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use std::time::Duration;
use tracing::{Metadata, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// The target of spans, and of nothing else.
pub const TARGET: &str = "headroom_trace";
const SERVICE: &str = "headroom-quota-service";
/// Spans that are left at the stop are sent within this, or lost.
const FLUSHES_WITHIN: Duration = Duration::from_secs(5);

/// A span under the one that is current, with its fields.
macro_rules! span {
    ($name:literal $(, $($fields:tt)*)?) => {
        tracing::info_span!(target: $crate::trace::TARGET, $name $(, $($fields)*)?)
    };
}
pub(crate) use span;

/// Whether a collector of traces can be spoken to.
///
/// # Errors
/// It is no `http://HOST…`.
pub fn check_endpoint(endpoint: &str) -> Result<(), String> {
    collector::traces_url(endpoint).map(drop)
}

/// The way of spans to a collector.
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Where the settings name a collector. Within the runtime, which sends for as long as it lives.
    ///
    /// # Errors
    /// The settings or the variables `OTEL_*` of the collector are invalid.
    pub fn of(config: &Config) -> Result<Option<Self>, String> {
        if config.otlp_endpoint.get().is_none() {
            return Ok(None);
        }
        let exporter = collector::exporter(config.otlp_endpoint.as_str())?;
        let resource = Resource::builder()
            .with_service_name(SERVICE)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", config.replica_name()));
        // A caller with a trace decides for all of it; other requests are sampled by id.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.trace_sample_ratio)));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_sampler(sampler)
            .with_batch_exporter(exporter);
        Ok(Some(Self { provider: provider.build() }))
    }

    /// The layer that exports the spans of this program.
    #[must_use]
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let scope = InstrumentationScope::builder("quota-service").with_version(env!("CARGO_PKG_VERSION")).build();
        let is_ours = |metadata: &Metadata<'_>| metadata.is_span() && metadata.target() == TARGET;
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer_with_scope(scope))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_level(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_ours))
    }

    /// Sends what is left.
    pub async fn end(self) {
        // The exporter waits for the runtime, so the runtime must not wait for it.
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(FLUSHES_WITHIN)).await;
        if let Ok(Err(fault)) = ended {
            tracing::info!(%fault, "cannot send the last spans");
        }
    }
}

/// The span of a request, in the trace of the caller.
pub fn request(request: &Request, route: Option<&str>) -> Span {
    let method = request.method();
    let span = span!(
        "request",
        otel.name = format!("{method} {}", route.unwrap_or("none")),
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = %method,
        http.route = route,
        http.response.status_code = field::Empty,
    );
    if !span.is_disabled() {
        let caller = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
        // It fails for a span that has begun, which this one has not.
        let _ = span.set_parent(caller);
    }
    span
}

/// Notes what was answered.
pub fn answered(span: &Span, response: &Response) {
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// Adds the current span to the headers of a request.
pub fn hand_on(headers: &mut HeaderMap) {
    let span = Span::current();
    if !span.is_disabled() {
        TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(headers));
    }
}
