//! `headroom mcp`: a server of the Model Context Protocol, over stdin and stdout or over HTTP. Its tools read; those that write are
//! offered only where they are allowed.

mod answer;
mod arguments;
mod call;
mod messages;
mod remedies;
mod tools;

use crate::args::McpFlags;
use crate::config::Config;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use command_line::{Exit, Failure, print_notice, say};
use headroom_client::Client;
use rmcp::ServiceExt;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use serving::listen::{ConnectionLimits, serve};
use serving::signals::stop_within;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::duplex;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const INSTRUCTIONS: &str = "Headroom sells the GPUs that high-priority work leaves idle as spot quota. A quota of H hours is what spot \
    tasks with a guarantee of at least H hours may hold. Refusals and reasons have a stable code, a sentence with numbers, and a \
    remedy. Without cluster and gpu_model, the pool of the settings is meant, or the only one.";

/// Path of the protocol over HTTP.
const PATH: &str = "/mcp";
/// Connections over HTTP: agents on this machine.
const LIMITS: ConnectionLimits =
    ConnectionLimits { connections: 64, header: Duration::from_secs(30), write: Duration::from_secs(30) };
/// Room between stdin or stdout and the server.
const PIPE_BYTES: usize = 64 * 1_024;
/// Answers to texts that are no message, until they are printed.
const REFUSALS: usize = 16;
/// Time for open requests after a stop signal.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A server: a client of the service, and the tools that it offers.
#[derive(Clone)]
struct Server {
    client: Client,
    config: Arc<Config>,
    writes: bool,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("headroom", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::offered(self.writes)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::offered(self.writes).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if self.get_tool(&request.name).is_none() {
            return Err(arguments::refused(tools::unknown(&request.name, self.writes)));
        }
        call::run(self, &request.name, arguments).await.map(Into::into)
    }

    /// A call of a tool arrives here, too, where its parameters are of another form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let detail = "the parameters of tools/call have another form: expected a tool as a string in `name` and its parameters as an \
                      object in `arguments`";
        Err(arguments::refused(detail))
    }
}

/// Serves until its input ends, or a signal stops it.
///
/// # Errors
/// An address cannot be listened on, or is reachable from other machines.
pub async fn run(client: &Client, config: &Config, flags: &McpFlags, json: bool) -> Result<(), Failure> {
    let server = Server { client: client.clone(), config: Arc::new(config.clone()), writes: flags.allow_writes };
    match flags.http {
        None => over_stdio(server).await,
        Some(address) => over_http(server, address, json).await,
    }
}

async fn over_stdio(server: Server) -> Result<(), Failure> {
    let failed = |fault: &dyn std::fmt::Display| Failure::new(Exit::Failure, format_args!("stdin and stdout: {fault}"));
    let (input, output) = stdio();
    let ((to_server, from_client), (to_client, from_server)) = (duplex(PIPE_BYTES), duplex(PIPE_BYTES));
    let (refusals, refused) = mpsc::channel(REFUSALS);
    tokio::spawn(messages::pass(input, to_server, refusals));
    let printing = tokio::spawn(messages::print(from_server, refused, output));
    let served = match server.serve((from_client, to_client)).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|fault| failed(&fault)),
        // A client that goes away before its first request wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(fault) => Err(failed(&fault)),
    };
    // A client that reads no more is gone, too.
    drop(printing.await);
    served
}

async fn over_http(server: Server, address: SocketAddr, json: bool) -> Result<(), Failure> {
    if !address.ip().is_loopback() {
        let text = format!(
            "--http {address}: it is reachable from other machines, which would ask with the token of this program: listen on \
             127.0.0.1 or [::1], behind a proxy that authenticates"
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    let listener = TcpListener::bind(address).await;
    let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let unusable = |fault| Failure::new(Exit::Failure, format_args!("--http {address} cannot be listened on: {fault}"));
    let (address, listener) = bound.map_err(unusable)?;
    let stop = stop_within(ENDS_WITHIN);
    let stop = stop.map_err(|fault| Failure::new(Exit::Failure, format_args!("no signals are received: {fault}")))?;
    let settings = StreamableHttpServerConfig::default().enforce_origin_validation();
    let most_bytes = settings.max_request_body_bytes;
    let messages = from_fn(move |request: Request, next: Next| messages::pass_http(most_bytes, request, next));
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::<LocalSessionManager>::default(), settings);
    let elsewhere = || async { (StatusCode::NOT_FOUND, "nothing is here: the Model Context Protocol is at /mcp\n") };
    let router = Router::new().route_service(PATH, service).route_layer(messages).fallback(elsewhere);
    if json {
        say(json!({ "listening": address.to_string(), "url": format!("http://{address}{PATH}") }));
    } else {
        say(format_args!("listening on http://{address}{PATH}"));
        print_notice("Ctrl-C stops it");
    }
    serve(listener, None, router, LIMITS, stop).await;
    Ok(())
}
