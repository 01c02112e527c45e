//! Connections: from bytes to what is asked, and from what is answered to bytes.

use crate::ask::{Ask, Request};
use crate::faults::{self, What};
use crate::resources::Kind;
use crate::server::Server;
use crate::status::Refusal;
use crate::watch::Watch;
use crate::write::{Write, Written};
use crate::{control, discovery, evict, list, rules};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{HeaderMap, HeaderName};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Response = hyper::Response<Body>;

/// Serves until it is dropped, and with it every connection.
pub async fn serve(listener: TcpListener, server: Arc<Server>) {
    let mut connections = JoinSet::new();
    let mut down = server.down.subscribe();
    loop {
        tokio::select! {
            _ = down.changed() => connections.abort_all(),
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                if *down.borrow() {
                    continue;
                }
                let server = Arc::clone(&server);
                connections.spawn(async move {
                    let service = service_fn(|request| answer(Arc::clone(&server), request));
                    // A connection that breaks is the client's to notice.
                    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn text(status: u16, content_type: &str, body: String) -> Response {
    let body = Full::new(Bytes::from(body)).boxed_unsync();
    let response = hyper::Response::builder().status(status).header("content-type", content_type);
    response.body(body).expect("status and header are well formed")
}

fn refuse(refusal: &Refusal) -> Response {
    let mut response = match &refusal.body {
        Value::String(plain) => text(refusal.code, "text/plain; charset=utf-8", plain.clone()),
        status => text(refusal.code, "application/json", status.to_string()),
    };
    if let Some(seconds) = refusal.retry_after_s {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    response
}

/// Result of a handler: text of JSON, or a watch.
enum Answer {
    Json(u16, String),
    Watch(Box<Watch>),
}

async fn answer(server: Arc<Server>, request: hyper::Request<Incoming>) -> Result<Response, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    let (method, path) = (head.method.as_str(), head.uri.path());
    let query = head.uri.query().unwrap_or_default();
    if let Some(rest) = path.strip_prefix("/fake/") {
        let (status, reply) = control::answer(&server, method, rest, query, &body);
        return Ok(text(status, "application/json", reply.to_string()));
    }
    let content_type = header(&head.headers, &hyper::header::CONTENT_TYPE);
    let user_agent = header(&head.headers, &hyper::header::USER_AGENT);
    let authorization = header(&head.headers, &hyper::header::AUTHORIZATION);
    let token = authorization.strip_prefix("Bearer ").map(str::to_owned);
    let ask = Ask::read(method, path, query).filter(|ask| !ask.plural.is_empty()).map(|ask| Ask {
        content_type: content_type.clone(),
        user_agent: user_agent.clone(),
        token: token.clone().unwrap_or_default(),
        body: body.clone(),
        ..ask
    });
    let number = server.log().begin(logged(method, path, query, &content_type, &user_agent, body, ask.as_ref()));
    server.unpaused().await;
    let accept = header(&head.headers, &hyper::header::ACCEPT);
    let answered = respond(&server, path, token.as_deref(), &accept, ask).await?;
    let response = match answered {
        Ok(Answer::Json(status, json)) => text(status, "application/json", json),
        Ok(Answer::Watch(watch)) => watched(watch),
        Err(refusal) => refuse(&refusal),
    };
    server.log().end(number, response.status().as_u16());
    Ok(response)
}

fn logged(
    method: &str,
    path: &str,
    query: &str,
    content_type: &str,
    user_agent: &str,
    body: String,
    ask: Option<&Ask>,
) -> Request {
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        content_type: content_type.to_owned(),
        user_agent: user_agent.to_owned(),
        body,
        ..Request::default()
    };
    if let Some(ask) = ask {
        request.verb.clone_from(&ask.verb);
        request.group.clone_from(&ask.group);
        request.resource = ask.resource();
        request.namespace.clone_from(&ask.namespace);
        request.name.clone_from(&ask.name);
        ask.word("fieldManager").clone_into(&mut request.manager);
        request.force = ask.flag("force");
        request.dry_run = ask.dry_run();
    }
    request
}

fn watched(watch: Box<Watch>) -> Response {
    let lines = stream::unfold(watch, |mut watch| async move {
        let lines = watch.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(lines))), watch))
    });
    let response = hyper::Response::builder().status(200).header("content-type", "application/json");
    response.body(StreamBody::new(lines).boxed_unsync()).expect("status and header are well formed")
}

/// Whether plain JSON is among what the client takes; a table or metadata alone is not served.
fn takes_json(accept: &str) -> bool {
    let plain = |one: &str| {
        let one = one.trim();
        one.starts_with("*/*")
            || one.starts_with("application/*")
            || (one.starts_with("application/json") && !one.contains("as="))
    };
    accept.is_empty() || accept.split(',').any(plain)
}

/// Checks token, permission and faults; only then the request itself. The outer error closes the connection.
async fn respond(
    server: &Arc<Server>,
    path: &str,
    token: Option<&str>,
    accept: &str,
    ask: Option<Ask>,
) -> Result<Result<Answer, Refusal>, io::Error> {
    let open = matches!(path, "/livez" | "/readyz" | "/healthz" | "/version");
    if (!open || token.is_some())
        && let Err(refusal) = server.access().know(token)
    {
        return Ok(Err(refusal));
    }
    let Some(ask) = ask else { return Ok(discovered(server, path)) };
    let may = server.access().check(&ask.token, &ask.deed());
    if let Err(refusal) = may {
        return Ok(Err(refusal));
    }
    if !takes_json(accept) {
        let text = "only the following media types are accepted: application/json";
        return Ok(Err(Refusal::new(406, "NotAcceptable", text)));
    }
    let fault = faults::take(&mut server.faults(), &ask.verb, &ask.resource(), ask.word("fieldManager"));
    let Some(fault) = fault else { return Ok(dispatch(server, &ask)) };
    if fault == What::Drop {
        return Err(io::Error::other("a fault closes the connection"));
    }
    tokio::time::sleep(fault.wait()).await;
    let before = if matches!(fault, What::FailAfter(_)) { dispatch(server, &ask).err() } else { None };
    Ok(match before.or_else(|| fault.refusal(&ask.qualified_resource(), &ask.name)) {
        Some(refusal) => Err(refusal),
        None => dispatch(server, &ask),
    })
}

fn discovered(server: &Server, path: &str) -> Result<Answer, Refusal> {
    if matches!(path, "/livez" | "/readyz" | "/healthz") {
        return Ok(Answer::Json(200, "ok".to_owned()));
    }
    if let Some(version) = path.strip_prefix("/openapi/v3/apis/") {
        let found = discovery::schemas(&server.state(), version);
        return found.map(|answer| Answer::Json(200, answer.to_string())).ok_or_else(Refusal::no_such_path);
    }
    let found = discovery::answer(server.state().kinds(), path);
    found.map(|answer| Answer::Json(200, answer.to_string())).ok_or_else(Refusal::no_such_path)
}

fn dispatch(server: &Arc<Server>, ask: &Ask) -> Result<Answer, Refusal> {
    let kind = server.state().kind(&ask.group, &ask.version, &ask.plural).ok_or_else(Refusal::no_such_path)?;
    let sub = ask.subresource.as_str();
    if !sub.is_empty() && !kind.subresources().contains(&sub) {
        return Err(Refusal::new(404, "NotFound", "the server could not find the requested resource"));
    }
    match (ask.verb.as_str(), sub) {
        ("get", "" | "status") => {
            let found = Write { state: &mut server.state(), kind: &kind, ask }.found()?;
            Ok(Answer::Json(200, found.to_string()))
        }
        ("list", "") => Ok(Answer::Json(200, list::list(&mut server.state(), &kind, ask)?)),
        ("watch", "") => Ok(Answer::Watch(Box::new(Watch::begin(server, &kind, ask)?))),
        _ => {
            let written = write(server, &kind, ask);
            server.tell();
            written.map(|(status, object)| Answer::Json(status, object.to_string()))
        }
    }
}

fn write(server: &Arc<Server>, kind: &Kind, ask: &Ask) -> Written {
    let refused =
        || Refusal::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    if kind.plural == "selfsubjectaccessreviews" {
        let review: Value =
            serde_json::from_str(&ask.body).map_err(|error| Refusal::bad_request(&error.to_string()))?;
        return if ask.verb == "create" {
            Ok((201, server.access().review(&ask.token, &review)))
        } else {
            Err(refused())
        };
    }
    if ask.verb != "delete" {
        rules::namespace(&server.state(), kind, &ask.namespace)?;
    }
    match (ask.verb.as_str(), ask.subresource.as_str()) {
        ("create", "eviction") => return evict::evict(server, kind, ask),
        ("create", "binding") => return evict::bind(server, kind, ask),
        ("delete", "") if kind.table() == "pods" => return evict::delete(server, kind, ask),
        _ => {}
    }
    let mut state = server.state();
    let mut write = Write { state: &mut state, kind, ask };
    match (ask.verb.as_str(), ask.subresource.as_str()) {
        ("create", "") if ask.name.is_empty() => write.create(),
        ("update", "" | "status") => write.update(),
        ("patch", "" | "status") => write.patch(),
        ("delete", "") => write.delete(),
        _ => Err(refused()),
    }
}
