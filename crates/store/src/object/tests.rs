//! What a user reads when a store refuses, or does not answer. A small server answers as S3 does.

use std::net::TcpListener;

use super::*;

fn assert_tells(error: &Error, location: &str, texts: &[&str]) {
    let text = error.to_string();
    for part in [location].iter().chain(texts) {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
    assert!(!text.contains('\n') && !text.contains("  "), "{text}");
}

/// A server that takes connections and never answers; returns its host and port.
fn silent_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    address.to_string()
}

#[cfg(feature = "cloud")]
mod cloud {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    /// A fault that no repetition helps against is told within this time.
    const AT_ONCE: Duration = Duration::from_secs(2);
    const LOCATION: &str = "s3://clicks/2026";
    const ACCESS_KEY: &str = "AKIAUSEDBYATEST";
    const SECRET: &str = "secret-of-a-test";
    const SESSION_TOKEN: &str = "token-of-a-test";

    /// A folder of S3 at an endpoint.
    fn folder(endpoint: &str) -> ObjectFolder {
        let builder = object_store::aws::AmazonS3Builder::new().with_url(LOCATION).with_endpoint(endpoint);
        let builder = builder.with_access_key_id(ACCESS_KEY).with_secret_access_key(SECRET);
        let builder = builder.with_token(SESSION_TOKEN).with_region("us-east-1").with_allow_http(true);
        ObjectFolder {
            store: Arc::new(builder.with_retry(retries()).build().unwrap()),
            prefix: Path::from("2026"),
            location: LOCATION.to_owned(),
            has_folders: false,
        }
    }

    /// Answers each request with this status and error document, as S3 writes it; returns its endpoint and the number of requests.
    fn refusing_server(status: u16, code: &'static str, message: &'static str) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
                answer(stream.unwrap(), status, code, message);
            }
        });
        (endpoint, requests)
    }

    fn answer(stream: TcpStream, status: u16, code: &str, message: &str) {
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        while reader.read_line(&mut head).unwrap() > 2 {
            let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
            if let Some(bytes) = line.strip_prefix("content-length:") {
                length = bytes.trim().parse().unwrap();
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let document = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>\
             <AWSAccessKeyId>{ACCESS_KEY}</AWSAccessKeyId><Token-0>{SESSION_TOKEN}</Token-0>\
             <RequestId>EX4MPL3</RequestId><HostId>eftixk72aD6Ap51T</HostId></Error>"
        );
        // As HTTP wants it, the answer to HEAD has a length and no body.
        let body = if head.starts_with("HEAD") { "" } else { &document };
        let lengths = format!("connection: close\r\ncontent-length: {}\r\n", document.len());
        let answer =
            format!("HTTP/1.1 {status} Refused\r\ncontent-type: application/xml\r\n{lengths}\r\n{body}");
        reader.into_inner().write_all(answer.as_bytes()).unwrap();
    }

    #[test]
    fn a_refusal_is_told_at_once_with_its_reason_and_what_to_do_and_without_credentials() {
        let faults = [
            (
                403,
                "InvalidAccessKeyId",
                "The AWS Access Key Id you provided does not exist in our records.",
                ["does not exist in our records", "the credentials AWS_ACCESS_KEY_ID"],
            ),
            (
                403,
                "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
                ["does not match", "AWS_SECRET_ACCESS_KEY"],
            ),
            (
                400,
                "ExpiredToken",
                "The provided token has expired.",
                ["has expired", "renew AWS_SESSION_TOKEN"],
            ),
            (
                403,
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
                ["too large", "the clock of this machine differs"],
            ),
            (403, "AccessDenied", "Access Denied", ["Access Denied", "the credentials do not allow this"]),
            (
                404,
                "NoSuchBucket",
                "The specified bucket does not exist",
                ["bucket does not exist", "AWS_ENDPOINT_URL"],
            ),
            (
                400,
                "AuthorizationHeaderMalformed",
                "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'",
                ["expecting 'eu-west-1'", "set AWS_REGION"],
            ),
        ];
        for (status, code, message, texts) in faults {
            let (endpoint, requests) = refusing_server(status, code, message);
            let folder = folder(&endpoint);
            let start = Instant::now();
            let errors = [
                folder.write("a.csv", b"1").unwrap_err(),
                folder.create_new("a.csv", b"1").unwrap_err(),
                folder.read("a.csv").unwrap_err(),
                folder.list("").unwrap_err(),
                folder.files("").unwrap_err(),
                folder.remove("a.csv").unwrap_err(),
            ];
            // Reading asks by HEAD, and then by GET for the reason.
            assert_eq!(requests.load(Ordering::Relaxed), errors.len() + 1, "{code}");
            assert!(start.elapsed() < AT_ONCE, "{code}: {:?}", start.elapsed());
            for error in errors {
                assert!(!error.is_not_found() && !error.is_bad_address(), "{error}");
                assert_tells(&error, LOCATION, &texts);
                for own in [ACCESS_KEY, SECRET, SESSION_TOKEN, "EX4MPL3", "eftixk72aD6Ap51T", "<"] {
                    assert!(!error.to_string().contains(own), "{own} in: {error}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_missing_is_no_fault_of_the_bucket() {
        let (endpoint, _) = refusing_server(404, "NoSuchKey", "The specified key does not exist.");
        let folder = folder(&endpoint);
        assert!(folder.read("a.csv").unwrap_err().is_not_found());
        folder.delete("", Path::from("2026/a.csv")).unwrap();
    }

    #[test]
    fn a_part_of_a_large_file_that_is_refused_ends_the_write() {
        let (endpoint, _) = refusing_server(403, "AccessDenied", "Access Denied");
        let error = folder(&endpoint).write("large", &vec![0; PART_BYTES + 1]).unwrap_err();
        assert_tells(
            &error,
            LOCATION,
            &["cannot write s3://clicks/2026/large: ", "the credentials do not allow this"],
        );
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let endpoint = format!("http://{address}");
        let error = folder(&endpoint).read("a.csv").unwrap_err();
        assert_tells(&error, LOCATION, &[&endpoint, "Connection refused", "check its address"]);
        let error = folder(&format!("http://{}", silent_server())).read("a.csv").unwrap_err();
        assert_tells(&error, LOCATION, &["has not answered for"]);
    }

    #[test]
    fn credentials_that_are_not_set_are_asked_for() {
        let source = "Error performing PUT http://169.254.169.254/latest/api/token in 5s - HTTP error: error sending request";
        let error = object_store::Error::Generic { store: "S3", source: source.into() };
        let text = explain(&error);
        assert!(text.contains("no credentials") && text.contains("set AWS_ACCESS_KEY_ID"), "{text}");
    }
}

#[cfg(feature = "hdfs")]
#[test]
fn a_name_node_that_does_not_answer_is_given_up() {
    let location = format!("hdfs://{}/clicks", silent_server());
    let folder = ObjectFolder::open("hdfs", &location).unwrap().unwrap();
    for error in [folder.write("a.csv", b"1").unwrap_err(), folder.list("").unwrap_err()] {
        assert_tells(&error, &location, &["has not answered for", "see whether it runs"]);
    }
}
