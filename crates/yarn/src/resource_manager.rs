//! Calls of the REST interface of the ResourceManager. Each has a limit, and of several ResourceManagers the first that answers
//! as the active one counts.

use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::error::Error;

/// Longest wait for the answer of one ResourceManager; tests do not wait that long.
const ANSWER_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// Number of times that all of them are asked, and the pause before the second time, which doubles.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);
/// What a ResourceManager says before the address of the active one.
const STANDBY: &str = "This is standby RM. The redirect url is: ";
/// What it says while there is no active one.
const NO_ACTIVE: [&str; 2] = ["Can not find any active RM", "There is no active RM"];

/// The ResourceManagers of a cluster.
#[derive(Clone, Debug)]
pub struct ResourceManager {
    urls: Vec<String>,
    user: String,
    agent: Agent,
}

/// A new application, and the largest container that it may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApplication {
    pub id: String,
    pub largest_memory_mib: u64,
    pub largest_vcores: u64,
}

/// What YARN says of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationReport {
    /// `ACCEPTED`, `RUNNING`, `FINISHED`, `FAILED`, `KILLED` and so on.
    pub state: String,
    /// `UNDEFINED` before the end, then `SUCCEEDED`, `FAILED` or `KILLED`.
    pub final_status: String,
    pub diagnostics: String,
    pub user: String,
    /// Where the logs of the Application Master are shown; empty before it runs.
    pub logs_url: String,
}

impl ApplicationReport {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "FINISHED" | "FAILED" | "KILLED")
    }

    /// The error of an application that has ended.
    pub fn ended(&self, application: &str) -> Error {
        let logs = if self.logs_url.is_empty() {
            String::new()
        } else {
            format!(". Logs of its Application Master: {}", self.logs_url)
        };
        let state = if self.final_status == "UNDEFINED" { &self.state } else { &self.final_status };
        let diagnostics = match self.diagnostics.trim() {
            "" => "YARN gives no reason".to_owned(),
            text => first_lines(text),
        };
        Error::Ended { application: application.to_owned(), state: state.clone(), diagnostics, logs }
    }
}

/// A text without the stack of a program in Java.
fn first_lines(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.trim_start().starts_with("at "));
    lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl ResourceManager {
    /// The ResourceManagers at these web addresses, separated by commas, for a user.
    pub fn new(urls: &str, user: &str) -> Self {
        let urls = urls.split(',').map(|url| url.trim().trim_end_matches('/').to_owned());
        let config = Agent::config_builder()
            .timeout_global(Some(ANSWER_LIMIT))
            .http_status_as_error(false)
            // A standby names the active one in this way, perhaps by a name that only the cluster knows.
            .max_redirects(0)
            .user_agent("seraphim");
        Self { urls: urls.collect(), user: user.to_owned(), agent: config.build().new_agent() }
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    /// Asks for a new application.
    ///
    /// # Errors
    /// Those of a call, as of all functions here.
    pub fn new_application(&self) -> Result<NewApplication, Error> {
        let (url, answer) = self.call("make an application", "/apps/new-application", Some(&json!({})))?;
        let largest = &answer["maximum-resource-capability"];
        let described =
            answer["application-id"].as_str().zip(largest["memory"].as_u64()).zip(largest["vCores"].as_u64());
        match described {
            Some(((id, largest_memory_mib), largest_vcores)) => {
                Ok(NewApplication { id: id.to_owned(), largest_memory_mib, largest_vcores })
            }
            None => Err(Error::Answer { url, action: "make an application", reason: answer.to_string() }),
        }
    }

    /// Submits an application.
    pub fn submit(&self, submission: &Value) -> Result<(), Error> {
        self.call("start the application", "/apps", Some(submission)).map(drop)
    }

    /// What it says of an application.
    pub fn report(&self, application: &str) -> Result<ApplicationReport, Error> {
        let (_, answer) = self.call("describe the application", &format!("/apps/{application}"), None)?;
        let text = |name: &str| answer["app"][name].as_str().unwrap_or_default().to_owned();
        Ok(ApplicationReport {
            state: text("state"),
            final_status: text("finalStatus"),
            diagnostics: text("diagnostics"),
            user: text("user"),
            logs_url: text("amContainerLogs"),
        })
    }

    /// Ends an application at once.
    pub fn kill(&self, application: &str) -> Result<(), Error> {
        let path = format!("/apps/{application}/state");
        self.request(
            "end the application",
            "PUT",
            &format!("/ws/v1/cluster{path}"),
            Some(&json!({"state": "KILLED"})),
        )
        .map(drop)
    }

    /// A setting of the cluster, such as `fs.defaultFS`.
    pub fn setting(&self, name: &str) -> Result<String, Error> {
        let (url, answer) = self.request("tell a setting", "GET", &format!("/conf?name={name}"), None)?;
        let value = answer["property"]["value"].as_str().map(str::to_owned);
        value.ok_or_else(|| Error::Answer { url, action: "tell a setting", reason: answer.to_string() })
    }

    fn call(&self, action: &'static str, path: &str, body: Option<&Value>) -> Result<(String, Value), Error> {
        let method = if body.is_some() { "POST" } else { "GET" };
        self.request(action, method, &format!("/ws/v1/cluster{path}"), body)
    }

    /// Returns the address that has answered, and the answer.
    fn request(
        &self,
        action: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(String, Value), Error> {
        let mut reason = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(PAUSE * 2u32.pow(attempt - 1));
            }
            for url in &self.urls {
                match self.ask(url, method, path, body) {
                    Ok((_, text)) if waits(&text).is_some() => {
                        reason = format!("{url} {}", waits(&text).unwrap_or_default());
                    }
                    Ok((status, text)) if (200..300).contains(&status) => {
                        let answer = serde_json::from_str(&text).unwrap_or(Value::Null);
                        return Ok((url.clone(), answer));
                    }
                    Ok((status, text)) if status < 500 => {
                        return Err(Error::Refused {
                            url: url.clone(),
                            action,
                            reason: refusal(status, &text),
                        });
                    }
                    Ok((status, text)) => reason = refusal(status, &text),
                    Err(error) => reason = error.to_string(),
                }
            }
        }
        Err(Error::Unreachable { urls: self.urls.join(", "), reason })
    }

    fn ask(
        &self,
        url: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, String), ureq::Error> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let url = format!("{url}{path}{separator}user.name={}", self.user);
        let request = ureq::http::Request::builder().method(method).uri(url);
        let request = request.header("accept", "application/json").header("content-type", "application/json");
        let text = body.map(Value::to_string).unwrap_or_default();
        let mut response = self.agent.run(request.body(text)?)?;
        let status = response.status().as_u16();
        Ok((status, response.body_mut().read_to_string()?))
    }
}

/// What a ResourceManager is that does not decide, from its answer.
fn waits(text: &str) -> Option<String> {
    if let Some((_, active)) = text.split_once(STANDBY) {
        let address = active.split("/ws/").next().unwrap_or(active).trim();
        return Some(format!("is a standby, and {address} is active"));
    }
    let is_waiting = NO_ACTIVE.iter().any(|start| text.contains(start));
    is_waiting.then(|| "waits, because no ResourceManager is active".to_owned())
}

/// What a refusal says, without the stack.
fn refusal(status: u16, text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let message = value["RemoteException"]["message"].as_str().unwrap_or(text);
    match first_lines(message) {
        text if text.is_empty() || text.starts_with('<') => format!("status {status}"),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Answers each request with the next of these statuses and texts; returns its address.
    fn server(answers: Vec<(u16, &'static str)>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for (status, text) in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream);
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).unwrap() > 2 {
                    let lower = line.to_ascii_lowercase();
                    if let Some(bytes) = lower.strip_prefix("content-length:") {
                        length = bytes.trim().parse().unwrap();
                    }
                    line.clear();
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                // As the ResourceManager does it: of a standby the address of the active one.
                let active = text.strip_prefix(STANDBY).map(str::trim);
                let location = active.map_or_else(String::new, |url| format!("location: {url}\r\n"));
                let head = format!(
                    "HTTP/1.1 {status} x\r\n{location}connection: close\r\ncontent-length: {}\r\n\r\n",
                    text.len()
                );
                reader.into_inner().write_all((head + text).as_bytes()).unwrap();
            }
        });
        format!("http://{address}")
    }

    #[test]
    fn the_one_that_decides_is_asked_and_a_standby_is_not() {
        let redirect =
            "This is standby RM. The redirect url is: http://rm2:8088/ws/v1/cluster/apps/new-application\n";
        let standby = server(vec![(307, redirect); 9]);
        let new = r#"{"application-id":"application_1_2","maximum-resource-capability":{"memory":4096,"vCores":4}}"#;
        let active = server(vec![(200, new)]);
        let both = ResourceManager::new(&format!("{standby}/, {active}"), "me");
        let expected =
            NewApplication { id: "application_1_2".into(), largest_memory_mib: 4096, largest_vcores: 4 };
        assert_eq!(both.new_application().unwrap(), expected);
        let text = ResourceManager::new(&standby, "me").new_application().unwrap_err().to_string();
        assert!(text.contains(&format!("{standby} is a standby, and http://rm2:8088 is active")), "{text}");
        assert!(text.contains("--yarn") && !text.contains('\n'), "{text}");
        let waiting =
            "Can not find any active RM. Will retry in next 3 seconds.\nHA Zookeeper Connection State: x\n";
        let text = ResourceManager::new(&server(vec![(307, waiting); 9]), "me").report("application_1_1");
        let text = text.unwrap_err().to_string();
        assert!(text.contains("no ResourceManager is active") && !text.contains('\n'), "{text}");
    }

    #[test]
    fn a_manager_that_does_not_answer_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let text = ResourceManager::new(&url, "me").new_application().unwrap_err().to_string();
        assert!(text.contains(&url) && text.contains("timeout") && text.contains("--yarn"), "{text}");
        drop(listener);
    }

    #[test]
    fn a_refusal_says_what_the_manager_says_without_its_stack() {
        let text = r#"{"RemoteException":{"message":"Application is not permitted\n\tat org.apache.Hadoop(A.java:1)"}}"#;
        let refusing = ResourceManager::new(&server(vec![(403, text)]), "me");
        let error = refusing.submit(&json!({})).unwrap_err().to_string();
        assert!(error.ends_with("refuses to start the application: Application is not permitted"), "{error}");
        let gone = ResourceManager::new("http://127.0.0.1:1", "me").report("application_1_1").unwrap_err();
        assert!(gone.to_string().contains("http://127.0.0.1:1"), "{gone}");
    }

    #[test]
    fn a_busy_manager_is_asked_again() {
        let report = r#"{"app":{"state":"FAILED","finalStatus":"FAILED","diagnostics":"no queue\n\tat x","user":"me"}}"#;
        let busy = ResourceManager::new(&server(vec![(503, "busy"), (200, report)]), "me");
        let report = busy.report("application_1_1").unwrap();
        assert!(report.is_over());
        assert_eq!(
            report.ended("application_1_1").to_string(),
            "application_1_1 has ended as FAILED: no queue"
        );
    }
}
