//! The connections of the service: so many at once, each with a limit on how long the head of a request may take and on how long
//! a client may leave its answer unread, and an end that lets open requests finish.

use crate::hosts;
use crate::pace::Paced;
use crate::standing::Standing;
use crate::tls::Tls;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt;

/// Between two tries where the system has no more sockets: they come back when connections close.
const NO_SOCKET_PAUSE: Duration = Duration::from_millis(100);

/// Buffer of a connection for heads and streams: the 400 KiB of hyper would be gigabytes for all streams together.
const BUFFER_BYTES: usize = 64 * 1_024;

/// Limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at once; further ones wait in the queue of the system.
    pub connections: usize,
    /// Until the head of a request has come, counted also while a kept connection is quiet.
    pub header: Duration,
    /// For which a client may read nothing of its answer, or less than 16 KiB a second; then its connection ends.
    pub write: Duration,
}

/// The routes of a server. Each request meets the newest, also on a connection that was accepted under older ones.
#[derive(Debug, Clone)]
pub struct Routes(watch::Receiver<Router>);

impl Routes {
    fn newest(&self) -> Router {
        self.0.borrow().clone()
    }
}

impl From<Router> for Routes {
    fn from(router: Router) -> Self {
        Self(watch::Sender::new(router).subscribe())
    }
}

/// A server whose routes can be exchanged while it runs. Dropped, it cuts its connections.
#[derive(Debug)]
pub struct Server {
    routes: watch::Sender<Router>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Server {
    /// Begins to answer.
    #[must_use]
    pub fn start(listener: TcpListener, tls: Option<Arc<Tls>>, router: Router, limits: ConnectionLimits) -> Self {
        let (routes, stop) = (watch::Sender::new(router), watch::Sender::new(false));
        let newest = Routes(routes.subscribe());
        let serving = tokio::spawn(serve(listener, tls, newest, limits, stop.subscribe()));
        Self { routes, stop, serving }
    }

    /// Later requests meet these routes.
    pub fn exchange(&self, router: Router) {
        drop(self.routes.send_replace(router));
    }

    /// Accepts no connection any more, and waits until the open ones have ended.
    pub async fn end(&mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Answers connections until `stop`, and then until the open ones have ended. Dropped, it cuts them.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    routes: impl Into<Routes>,
    limits: ConnectionLimits,
    mut stop: watch::Receiver<bool>,
) {
    let routes = routes.into();
    let places = Arc::new(Semaphore::new(limits.connections));
    let (graceful, refusing) = (GracefulShutdown::new(), Standing::new());
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).keep_alive(true);
    http.max_buf_size(BUFFER_BYTES);
    let mut open = JoinSet::new();
    loop {
        let accepted = async {
            // Never closed.
            let place = places.clone().acquire_owned().await.ok();
            listener.accept().await.map(|(stream, peer)| (stream, peer, place))
        };
        let (stream, peer, place) = tokio::select! {
            accepted = accepted => match accepted {
                Ok(accepted) => {
                    if let Some(over) = refusing.is_over("") {
                        tracing::info!(lasted_s = over.lasted_s, times = over.times, "connections are accepted again");
                    }
                    accepted
                }
                Err(fault) => {
                    if refusing.begins("") {
                        tracing::warn!(%fault, "connections are not accepted; the next message reports the end of this fault");
                    }
                    tokio::time::sleep(NO_SOCKET_PAUSE).await;
                    continue;
                }
            },
            // Only forgets what has ended.
            Some(_) = open.join_next() => continue,
            () = stopped(&mut stop) => break,
        };
        // Small answers go at once; where that cannot be set they go a little later.
        let _ = stream.set_nodelay(true);
        let connection = Connection { http: http.clone(), tls: tls.clone(), limits, peer, watcher: graceful.watcher() };
        let (stream, routes) = (Paced::new(stream, limits.write), routes.clone());
        open.spawn(async move {
            connection.answer(stream, routes).await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// One connection and its limits.
struct Connection {
    http: http1::Builder,
    tls: Option<Arc<Tls>>,
    limits: ConnectionLimits,
    peer: SocketAddr,
    watcher: Watcher,
}

impl Connection {
    /// Answers its requests until it ends.
    async fn answer(self, stream: Paced<TcpStream>, routes: Routes) {
        let Self { http, tls, limits, peer, watcher } = self;
        let answering = answering(routes, peer);
        let Some(tls) = tls else {
            let connection = http.serve_connection(TokioIo::new(stream), answering);
            return ended(peer, watcher.watch(connection).await);
        };
        match tokio::time::timeout(limits.header, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let connection = http.serve_connection(TokioIo::new(stream), answering);
                ended(peer, watcher.watch(connection).await);
            }
            Ok(Err(fault)) => tracing::debug!(%peer, %fault, "a handshake failed"),
            Err(_) => tracing::debug!(%peer, "a handshake took too long"),
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender sends no more.
    let _ = stop.wait_for(|stopping| *stopping).await;
}

/// A client that disconnects, or sends no HTTP, is logged for debugging only.
fn ended(peer: SocketAddr, how: Result<(), hyper::Error>) {
    if let Err(fault) = how {
        tracing::debug!(%peer, %fault, "a connection broke off");
    }
}

fn answering(
    routes: Routes,
    peer: SocketAddr,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<Body>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Body>, Infallible>> + Send,
> {
    service_fn(move |request: Request<Incoming>| {
        let fault = hosts::fault(&request);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answered = fault.is_none().then(|| routes.newest().oneshot(request));
        async move {
            match answered {
                Some(answered) => answered.await,
                None => Ok(hosts::refused(fault.unwrap_or_default())),
            }
        }
    })
}
