//! gRPC over one persistent channel. Invariants: a response is bounded and never compressed; a channel is closed
//! after a failed attempt.

use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use connect::ConnectError;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use prost::Message;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::{Failure, Reply, connection_error, with_causes, with_hint};
use crate::connector::Connector;
use crate::limits::REPLY_MAX_BYTES;
use crate::plan::{Protocol, Signal, Target};

pub(crate) struct Grpc {
    connector: Connector,
    uri: Uri,
    method: PathAndQuery,
    headers: Vec<(HeaderName, HeaderValue)>,
    gzip: bool,
    channel: Option<Channel>,
}

impl Grpc {
    pub(super) fn new(target: &Target, signal: Signal) -> io::Result<Self> {
        Ok(Self {
            connector: Connector::new(target)?,
            uri: target.uri.clone(),
            method: PathAndQuery::from_static(signal.method()),
            headers: target.headers.clone(),
            gzip: target.gzip,
            channel: None,
        })
    }

    pub(super) async fn attempt(&mut self, message: Bytes) -> Result<Reply, Failure> {
        // Taken out, so that every error closes it.
        let channel = match self.channel.take() {
            Some(channel) => channel,
            None => self.new_channel()?,
        };
        let mut client = tonic::client::Grpc::new(channel.clone()).max_decoding_message_size(REPLY_MAX_BYTES);
        if self.gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        client.ready().await.map_err(|error| Failure::retry(connection_failure(&error)))?;
        let mut request = Request::new(message);
        let headers: HeaderMap = self.headers.iter().cloned().collect();
        *request.metadata_mut() = MetadataMap::from_headers(headers);
        match client.unary(request, self.method.clone(), RawCodec).await {
            Ok(reply) => {
                self.channel = Some(channel);
                Ok(Some(reply.into_inner()))
            }
            Err(status) => Err(failure(&status)),
        }
    }

    fn new_channel(&self) -> Result<Channel, Failure> {
        let endpoint = Endpoint::from(self.uri.clone())
            .user_agent(crate::USER_AGENT)
            .map_err(|error| Failure::Refused(with_causes(&error)))?
            .http2_max_header_list_size(16 * 1024);
        Ok(endpoint.connect_with_connector_lazy(self.connector.clone()))
    }
}

/// Describes an attempt that ended without a response of the collector.
fn connection_failure(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(next) = cause {
        if let Some(error) = next.downcast_ref::<ConnectError>() {
            return connection_error(error);
        }
        if let Some(error) = next.downcast_ref::<io::Error>() {
            return error.to_string();
        }
        cause = next.source();
    }
    let message = with_causes(error);
    // The first three bytes of an HTTP/1 response, read as an HTTP/2 frame, are a length beyond the limit.
    if message.contains("frame with invalid size") { with_hint(&message, Protocol::Http) } else { message }
}

/// Classifies a status by the protocol's list of retryable codes.
fn failure(status: &Status) -> Failure {
    use std::error::Error;
    if status.source().is_some() {
        // The status is of the connection and not of the collector.
        return Failure::retry(connection_failure(status));
    }
    let error = format!("the collector answers {:?}", status.code());
    let after = retry_info(status.details());
    match status.code() {
        // From the local decoder: the response exceeds the limit.
        Code::OutOfRange if status.message().contains("decoded message length") => Failure::Refused(error),
        Code::ResourceExhausted if after.is_none() => Failure::Refused(error),
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Failure::Retry { error, after },
        _ => Failure::Refused(error),
    }
}

/// Returns the delay of a `google.rpc.RetryInfo` among the details.
fn retry_info(details: &[u8]) -> Option<Duration> {
    let details = Details::decode(details).ok()?;
    let info = details.details.iter().find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&*info.value).ok()?.delay?;
    let (seconds, nanos) = (u64::try_from(delay.seconds).ok()?, u32::try_from(delay.nanos).ok()?);
    Some(Duration::new(seconds, nanos.min(999_999_999)))
}

/// `google.rpc.Status`, with the needed field only.
#[derive(Clone, PartialEq, prost::Message)]
struct Details {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    delay: Option<Delay>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// A codec of raw bytes: messages are encoded once for all attempts, and `sender` decodes the response.
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
