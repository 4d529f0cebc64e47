//! Talking to the kernel about links: rtnetlink over a private runtime of one thread.
//!
//! A netlink socket belongs to the namespace in which it was opened and stays there. So one scratch thread
//! opens a socket in each namespace that it needs, and then works with all of them.
//!
//! Events have a socket of their own. Where many links come and go at once the kernel throws away what a full socket
//! cannot take, and an answer that was thrown away would be waited for without end.

use std::future::Future;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, Stream};
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::{LinkUnspec, MulticastGroup};
use tare_model::units::BitRate;

use crate::error::{LabError, Result};
use crate::links::Link;
use crate::rate;

/// How long a link may take to come up. It takes well under a millisecond on an idle host.
const LINK_READY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take. The kernel gives it at once, unless it waits for its lock on all links.
const ANSWER: Duration = Duration::from_secs(20);
/// State is asked for again after this long even when no event came: events may be lost, state may not.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The runtime on which requests wait for their answers.
pub(crate) struct Netlink {
    runtime: tokio::runtime::Runtime,
}

impl Netlink {
    pub(crate) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|e| LabError::system("start the runtime for netlink", e))?;
        Ok(Self { runtime })
    }

    /// Opens a socket in the namespace that this thread is in now.
    pub(crate) fn open(&self) -> Result<Links> {
        let _entered = self.runtime.enter();
        let failed = |e| LabError::system("open a netlink socket", e);
        let (connection, handle, _) = rtnetlink::new_connection().map_err(failed)?;
        self.runtime.spawn(connection);
        let (connection, _, events) = rtnetlink::new_multicast_connection(&[MulticastGroup::Link]).map_err(failed)?;
        self.runtime.spawn(connection);
        Ok(Links { handle, events: events.map(|_| ()).boxed() })
    }

    /// Waits for an answer.
    pub(crate) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }
}

/// The links of one namespace.
pub(crate) struct Links {
    handle: rtnetlink::Handle,
    /// One item whenever some link of the namespace has changed.
    events: BoxStream<'static, ()>,
}

impl Links {
    /// Makes a link of a kind that a module of the kernel provides, which loads it by itself.
    pub(crate) async fn add(&self, tried: &str, module: &str, message: LinkMessage) -> Result<()> {
        match in_time(tried, self.handle.link().add(message).execute()).await? {
            Err(rtnetlink::Error::NetlinkError(answer)) => Err(LabError::feature(tried, answer.to_io(), module)),
            other => other.map_err(|error| refused(tried, error)),
        }
    }

    pub(crate) async fn up(&self, name: &str) -> Result<()> {
        let message = LinkUnspec::new_with_name(name).up().build();
        self.change(&format!("set link {name} up"), message).await
    }

    pub(crate) async fn change(&self, tried: &str, message: LinkMessage) -> Result<()> {
        answered(tried, self.handle.link().change(message).execute()).await
    }

    /// Deletes the link of that name, if there is one.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        match self.find(name).await? {
            Some(link) => self.delete(link.index).await,
            None => Ok(()),
        }
    }

    /// Bounds the rate of what leaves the link of that name.
    pub(crate) async fn limit(&self, name: &str, rate: BitRate) -> Result<()> {
        let tried = format!("bound what leaves link {name} to {rate}");
        let message = rate::message(self.get(name).await?.index, rate);
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        let answers = self.handle.clone().request(request).map_err(|error| refused(&tried, error))?;
        let all: Vec<_> = in_time(&tried, answers.collect()).await?;
        match all.into_iter().find_map(|answer| match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Some(error.to_io()),
            _ => None,
        }) {
            Some(error) => Err(LabError::feature(&tried, error, rate::MODULE)),
            None => Ok(()),
        }
    }

    /// The rate to which what leaves the link of that name is bounded; `None` where it is not.
    pub(crate) async fn rate(&self, name: &str) -> Result<Option<BitRate>> {
        let tried = format!("look at the queue of link {name}");
        let index = self.get(name).await?.index.cast_signed();
        let answers = self.handle.qdisc().get().index(index).execute();
        let all: Vec<_> = in_time(&tried, answers.collect()).await?;
        let found =
            all.into_iter().find(|answer| answer.as_ref().map_or(true, |message| message.header.index == index));
        found.transpose().map(|message| message.as_ref().and_then(rate::read)).map_err(|error| refused(&tried, error))
    }

    async fn delete(&self, index: u32) -> Result<()> {
        let tried = format!("delete link number {index}");
        answered(&tried, self.handle.link().del(index).execute()).await
    }

    pub(crate) async fn address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<()> {
        let tried = format!("give address {address}/{prefix} to link number {index}");
        answered(&tried, self.handle.address().add(index, address, prefix).execute()).await
    }

    /// The addresses of a link.
    pub(crate) async fn addresses(&self, index: u32) -> Result<Vec<IpAddr>> {
        let tried = format!("list the addresses of link number {index}");
        let answers = self.handle.address().get().set_link_index_filter(index).execute();
        let all: Vec<_> = in_time(&tried, answers.collect()).await?;
        let mut found = Vec::new();
        for answer in all {
            let message = answer.map_err(|error| refused(&tried, error))?;
            found.extend(message.attributes.iter().filter_map(|own| match own {
                AddressAttribute::Local(address) | AddressAttribute::Address(address) => Some(*address),
                _ => None,
            }));
        }
        Ok(found)
    }

    /// The link of that name; `None` when there is none.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Link>> {
        let tried = format!("look at link {name}");
        match in_time(&tried, first(self.handle.link().get().match_name(name).execute())).await? {
            Some(Err(rtnetlink::Error::NetlinkError(e))) if e.to_io().raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Some(Err(e)) => Err(refused(&tried, e)),
            Some(Ok(message)) => Ok(Some(Link::read(&message))),
            None => Ok(None),
        }
    }

    /// The link of that name, which must be there.
    pub(crate) async fn get(&self, name: &str) -> Result<Link> {
        self.find(name).await?.ok_or_else(|| LabError::Unavailable {
            tried: format!("look at link {name}"),
            why: "it is not there any more".into(),
            remedy: "Nothing else may remove or rename links in tare's namespaces while a run goes on".into(),
        })
    }

    /// All links.
    pub(crate) async fn all(&self) -> Result<Vec<Link>> {
        let answers: Vec<_> = in_time("list the links", self.handle.link().get().execute().collect()).await?;
        answers
            .into_iter()
            .map(|answer| answer.map(|message| Link::read(&message)).map_err(|e| refused("list the links", e)))
            .collect()
    }

    /// Waits until `ready` is true of the link: after each change of some link, and now and then in between.
    pub(crate) async fn wait_until(&mut self, name: &str, what: &str, ready: impl Fn(&Link) -> bool) -> Result<Link> {
        let start = Instant::now();
        loop {
            let link = self.get(name).await?;
            if ready(&link) {
                return Ok(link);
            }
            if start.elapsed() > LINK_READY_TIMEOUT {
                return Err(LabError::Timeout {
                    tried: format!("see link {name} {what}"),
                    waited_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
                    seen: format!("its state was {}", link.describe()),
                    remedy: "The host may be overloaded, or something else may set links down".into(),
                });
            }
            // Either an event or the end of the wait: both lead to asking again. There are no more events when their
            // socket is broken: then the time alone is waited for.
            if let Ok(None) = tokio::time::timeout(ASK_AGAIN, self.events.next()).await {
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }
}

/// Waits for an answer that is a yes or a no.
async fn answered(tried: &str, answer: impl Future<Output = std::result::Result<(), rtnetlink::Error>>) -> Result<()> {
    in_time(tried, answer).await?.map_err(|e| refused(tried, e))
}

/// Waits for an answer, not without end.
async fn in_time<T>(tried: &str, answer: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(ANSWER, answer).await.map_err(|_| LabError::Timeout {
        tried: tried.to_owned(),
        waited_ms: u64::try_from(ANSWER.as_millis()).unwrap_or(u64::MAX),
        seen: "the kernel gave no answer".into(),
        remedy: "The host may be overloaded; try again".into(),
    })
}

async fn first<T>(stream: impl Stream<Item = T>) -> Option<T> {
    let mut stream = std::pin::pin!(stream);
    stream.next().await
}

fn refused(tried: &str, error: rtnetlink::Error) -> LabError {
    match error {
        rtnetlink::Error::NetlinkError(message) => LabError::system(tried, message.to_io()),
        other => LabError::Unavailable {
            tried: tried.to_owned(),
            why: other.to_string(),
            remedy: "`tare doctor` tells what this host can do".into(),
        },
    }
}
