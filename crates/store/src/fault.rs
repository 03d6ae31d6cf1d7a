//! What the errors of object stores and HDFS mean, and what to do about them. Object stores answer with a document that has a code and a
//! message, and Hadoop with the name of an exception and a message. The rest of an answer (ids of requests, the stack of the
//! server, what was signed) is left out.

use std::error::Error as StdError;

/// Where the libraries ask for credentials when none are set: the services of the clouds for their machines.
const CREDENTIAL_SERVICES: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

/// The code of an error, such as `AccessDenied` or `SafeModeException`, and the first line of its message.
struct Refusal {
    code: String,
    message: String,
}

/// What has happened and what to do, in one line.
pub(crate) fn explain(error: &object_store::Error) -> String {
    let text = error.to_string();
    if CREDENTIAL_SERVICES.iter().any(|service| text.contains(service)) {
        return "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://, GOOGLE_SERVICE_ACCOUNT \
                for gs://, AZURE_STORAGE_ACCOUNT_KEY for az://"
            .to_owned();
    }
    if let Some(Refusal { code, message }) = refusal(error, &text) {
        return format!("{message} ({code}){}", advice(&code));
    }
    if let Some(status) = status(&text) {
        let code = status.split(' ').next().unwrap_or_default();
        return format!("the store answers {status}{}", advice(code));
    }
    let cause = first_line(causes(error).last().unwrap_or(error));
    if text.contains("redirect without LOCATION") {
        return format!("the bucket is elsewhere{}", advice("PermanentRedirect"));
    }
    if causes(error).any(is_of_connection) {
        let endpoint = origin(&text).unwrap_or("the store");
        return format!(
            "the connection to {endpoint} has failed: {cause}; see whether it runs there, and check its address and \
             the network"
        );
    }
    cause
}

/// The text of an error. Some stores append the stack of their server.
pub(crate) fn first_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or("no reason is known").to_owned()
}

/// Whether the store has refused the call with a status. Its answer to a HEAD request has no code.
pub(crate) fn is_refused(error: &object_store::Error) -> bool {
    status(&error.to_string()).is_some_and(|status| status.starts_with('4'))
}

/// Whether a file or folder is missing, and not the whole bucket.
pub(crate) fn is_missing_file(error: &object_store::Error) -> bool {
    let is_bucket = || {
        refusal(error, &error.to_string()).is_some_and(|refusal| NO_BUCKET.contains(&refusal.code.as_str()))
    };
    matches!(error, object_store::Error::NotFound { .. }) && !is_bucket()
}

/// Codes of buckets and containers that do not exist.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// What to do after an error with this code or status, as the end of a sentence.
fn advice(code: &str) -> &'static str {
    match code {
        "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken" => {
            "; check the credentials AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if they are temporary"
        }
        "ExpiredToken" | "TokenRefreshRequired" => {
            "; renew AWS_SESSION_TOKEN, and with it AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        }
        "RequestTimeTooSkewed" => "; the clock of this machine differs from that of the store: set it",
        "AuthenticationFailed" => {
            "; check the credentials AZURE_STORAGE_ACCOUNT_KEY, and the clock of this machine"
        }
        "AccessDenied" | "AuthorizationFailure" | "AuthorizationPermissionMismatch" => {
            "; the credentials do not allow this: let the owner of the bucket allow it, or use others"
        }
        "401" | "403" => "; check the credentials, what they allow, and the clock of this machine",
        "NoSuchBucket" | "ContainerNotFound" => "; check its name, and the endpoint such as AWS_ENDPOINT_URL",
        "PermanentRedirect" | "AuthorizationHeaderMalformed" => {
            "; set AWS_REGION to the region of the bucket"
        }
        "SlowDown" | "ServerBusy" | "429" | "500" | "502" | "503" | "504" => {
            "; several attempts have failed: start again later"
        }
        "AccessControlException" => {
            "; let the owner of the folder allow it, or set HADOOP_USER_NAME to another user"
        }
        "SafeModeException" => {
            "; wait until the NameNode has left its safe mode, or end that with `hdfs dfsadmin -safemode leave`"
        }
        "StandbyException" => {
            "; name the active NameNode, or the name service with HADOOP_CONF_DIR set to its configuration"
        }
        "DSQuotaExceededException" | "NSQuotaExceededException" => {
            "; free space in the folder, or have its quota raised"
        }
        _ => "",
    }
}

fn refusal(error: &object_store::Error, text: &str) -> Option<Refusal> {
    // HDFS alone has errors with fields.
    let _ = error;
    #[cfg(feature = "hdfs")]
    for cause in causes(error) {
        use hdfs_native::HdfsError as E;
        if let Some(E::RPCError(exception, message) | E::FatalRPCError(exception, message)) =
            cause.downcast_ref()
        {
            let code = exception.rsplit('.').next().unwrap_or(exception).to_owned();
            return Some(Refusal { code, message: first_line(message) });
        }
    }
    let code = element(text, "Code")?.to_owned();
    let message = first_line(&element(text, "Message").unwrap_or("the store refuses it"));
    Some(Refusal { code, message: message.trim_end_matches('.').to_owned() })
}

/// The text within an element of XML.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(content, _)| content)
}

/// The status of an answer, such as `403 Forbidden`, with the line of text after it.
fn status(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("non-2xx status code: ")?;
    let end = rest.find(['<', '\n']).unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches([':', ' ']))
}

/// Scheme and host of the address that was called.
fn origin(text: &str) -> Option<&str> {
    let start = text.find("http://").or_else(|| text.find("https://"))?;
    let host = start + text[start..].find("://")? + "://".len();
    let end = text[host..].find(['/', ' ', '?']).map_or(text.len(), |length| host + length);
    Some(&text[start..end])
}

fn is_of_connection(cause: &(dyn StdError + 'static)) -> bool {
    #[cfg(feature = "cloud")]
    if cause.is::<object_store::client::HttpError>() {
        return true;
    }
    #[cfg(feature = "hdfs")]
    if let Some(hdfs_native::HdfsError::IOError(_)) = cause.downcast_ref() {
        return true;
    }
    let _ = cause;
    false
}

/// An error and its causes.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
