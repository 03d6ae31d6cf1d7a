//! What a pull and a push cost between processes: two servers of one lane each and this process as the task. The peers
//! are a raw stream of the same bytes and a raw round trip, in turns.

mod steps;

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use matrix::{
    Agent, Axis, Consistency, ElementType, Initializer, Keys, LocalConfig, LocalStore, MatrixId, MatrixSpec,
    Partitioner, PushRule, Selection, Storage, Values, ValuesMut,
};
use rpc::layout::{JobLayout, LaneAddress, assign_partitions};
use rpc::message::{CloseJob, Durability, Hello, OpenJob, Role, Standby};
use rpc::serve::Ports;
use rpc::{Address, Message};
use serde_json::{Value, json};
use server::write_ahead::files::WriteAheadLog;
use worker::RemoteAgent;

const DENSE_LEN: u64 = 1 << 20;
const SPARSE_ROWS: u64 = 10_000_000;
const SPARSE_KEYS: usize = 1_000_000;
const PARTITIONS: u32 = 8;
const ROUNDS: usize = 15;
/// Enough rounds for a clock with a resolution of a hundredth of a second.
const CPU_ROUNDS: usize = 150;
const PINGS: usize = 2000;
const SMALL_PUSHES: u32 = 100_000;
const SMALL_KEYS: u64 = 100;
/// Bytes per write of the raw stream.
const RAW_WRITE: usize = 1 << 20;
const WINDOW_BYTES: u64 = 64 << 20;

/// Runs a server process: it prints its address on the first line and serves until its input ends. `log`: the folder of its
/// write-ahead log, and whether it is synced.
pub(super) fn serve(log: Option<(&str, bool)>) -> Result<()> {
    let socket = std::env::temp_dir().join(format!("seraphim-benchmarks-{}.socket", std::process::id()));
    let config = server::ServerConfig {
        listen: vec!["tcp:127.0.0.1:0".parse()?, Address::Unix(socket)],
        lanes: 1,
        memory_limit_bytes: 8 << 30,
        write_ahead_log: log.map(open_log).transpose()?,
        ..server::ServerConfig::default()
    };
    let stop = rpc::Stop::new();
    let ended = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.raise();
    });
    let say = |ports: &Ports| {
        let (addresses, _) = ports.addresses();
        println!("{} {}", addresses[0], addresses[1]);
        // The parent process reads the line, or it has ended.
        let _ = std::io::stdout().flush();
        Ok::<(), server::Error>(())
    };
    Ok(server::run(config, stop, say)?)
}

fn open_log((folder, is_synced): (&str, bool)) -> Result<Arc<Mutex<WriteAheadLog>>> {
    Ok(Arc::new(Mutex::new(WriteAheadLog::open(Path::new(folder), 1, 1, is_synced)?)))
}

/// Runs the raw peer: a request of 8 bytes names a number of bytes, which the peer sends in writes of 1 MiB.
pub(super) fn raw() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let bytes = vec![7u8; RAW_WRITE];
    let mut request = [0; 8];
    while stream.read_exact(&mut request).is_ok() {
        let mut rest = u64::from_le_bytes(request) as usize;
        while rest > 0 {
            let count = rest.min(RAW_WRITE);
            stream.write_all(&bytes[..count])?;
            rest -= count;
        }
    }
    Ok(())
}

/// A child process of this program, which ends with the value.
pub(super) struct ChildServer {
    child: Child,
    pub(super) address: String,
    /// Its Unix socket, if it has one.
    socket: Option<String>,
}

impl ChildServer {
    pub(super) fn start(name: &str) -> Result<Self> {
        Self::start_with(&[name])
    }

    /// Starts this program with `inner` and these words.
    pub(super) fn start_with(words: &[&str]) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .arg("inner")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start this program again")?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("it is piped")?).read_line(&mut address)?;
        let mut addresses = address.split_whitespace().map(str::to_owned);
        let address = addresses.next().context("it says where it is")?;
        Ok(Self { child, address, socket: addresses.next() })
    }

    /// Seconds of user and system time.
    fn cpu_s(&self) -> Result<f64> {
        cpu_s(&self.child.id().to_string())
    }
}

fn cpu_s(process: &str) -> Result<f64> {
    /// The kernel counts hundredths of seconds.
    const TICKS_PER_S: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let field = |i: usize| fields.get(i).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((field(11) + field(12)) / TICKS_PER_S)
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const DENSE: MatrixId = MatrixId(0);
const SPARSE: MatrixId = MatrixId(1);

fn spec(name: &str, storage: Storage, rows: u64, columns: u64, axis: Axis) -> MatrixSpec {
    let partition_count = PARTITIONS;
    MatrixSpec {
        name: name.into(),
        element: ElementType::F32,
        rows,
        columns,
        axis,
        storage,
        partitioner: match storage {
            Storage::Dense => Partitioner::Range { partition_count },
            Storage::Sparse | Storage::List | Storage::UniqueList => Partitioner::Hash { partition_count },
        },
        initializer: Initializer::Zero,
        rule: PushRule::Add,
        consistency: Consistency::Asp,
        seed: 1,
    }
}

/// Opens a job of this benchmark on these servers.
pub(super) fn open_job(
    job: u32,
    servers: &[ChildServer],
    matrices: Vec<MatrixSpec>,
    tasks: u32,
) -> Result<JobLayout> {
    open_job_with(job, servers, matrices, tasks, Durability::Checkpoint)
}

/// Like [`open_job`]; with `Replica` each server has a standby, the next one.
pub(super) fn open_job_with(
    job: u32,
    servers: &[ChildServer],
    matrices: Vec<MatrixSpec>,
    tasks: u32,
    durability: Durability,
) -> Result<JobLayout> {
    let lane = |at: usize| {
        let (name, next) = (|at: usize| format!("server-{at}"), (at + 1) % servers.len());
        let addresses = vec![servers[next].address.clone()];
        let standby = Standby { primary: name(at), server: name(next), addresses, lane: 1 };
        LaneAddress {
            addresses: vec![servers[at].address.clone()],
            lane: 0,
            server: name(at),
            standby: (durability == Durability::Replica).then_some(standby),
        }
    };
    let lanes: Vec<LaneAddress> = (0..servers.len()).map(lane).collect();
    let count = lanes.len() as u16;
    let owners = |spec: &MatrixSpec| assign_partitions(spec.partitioner.partition_count(), count);
    let owners = matrices.iter().map(owners).collect();
    let layout = JobLayout {
        job,
        task_count: tasks,
        wait_limit: Duration::from_mins(1),
        window_bytes: WINDOW_BYTES,
        matrices,
        lanes,
        owners,
        home: 0,
        wire: Vec::new(),
        prefetch: matrix::Prefetch::default(),
    };
    for (lane, server) in (0u16..).zip(servers) {
        let message = OpenJob {
            request: 2,
            job,
            task_count: tasks,
            wait_limit_ms: 60_000,
            durability,
            standby: layout.lanes[usize::from(lane)].standby.clone(),
            matrices: layout.matrices.clone(),
            owned_partitions: layout.lane_partitions(lane),
            home: lane == 0,
            modules: Vec::new(),
        };
        send_and_wait(server, &Message::OpenJob(message))?;
    }
    Ok(layout)
}

fn send_and_wait(server: &ChildServer, message: &Message) -> Result<()> {
    let address: Address = server.address.parse()?;
    let hello = Hello { request: 1, token: Vec::new(), role: Role::Tool, lane: 0 };
    let (mut sender, mut receiver, _) = rpc::open(&address, Duration::from_secs(5), &hello)?;
    sender.send(message)?;
    match receiver.receive()? {
        Message::Done(_) => Ok(()),
        other => bail!("the server said {other:?}"),
    }
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

pub(super) fn timed(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// All figures of the wire as JSON, in seconds unless the name has another unit.
pub(super) fn run() -> Result<Value> {
    let servers = [ChildServer::start("wire-server")?, ChildServer::start("wire-server")?];
    let peer = ChildServer::start("wire-raw")?;
    let mut raw = TcpStream::connect(&peer.address)?;
    raw.set_nodelay(true)?;
    let mut sink = vec![0u8; 16 << 20];
    let mut raw_bytes = |bytes: usize| {
        timed(|| {
            raw.write_all(&(bytes as u64).to_le_bytes())?;
            Ok(raw.read_exact(&mut sink[..bytes])?)
        })
    };
    let mut figures = serde_json::Map::new();
    let cpu = peer.cpu_s()? + cpu_s("self")?;
    for _ in 0..2 * CPU_ROUNDS {
        raw_bytes(DENSE_LEN as usize * 4)?;
    }
    let cpu = peer.cpu_s()? + cpu_s("self")? - cpu;
    figures.insert("raw_cpu_s_per_gb".into(), json!(cpu / dense_gigabytes()));
    dense(&servers, &mut raw_bytes, Transport::Tcp, &mut figures)?;
    sparse(&servers, &mut raw_bytes, Transport::Tcp, &mut figures)?;
    small(&servers, &mut raw_bytes, &mut figures)?;
    steps::steps(&servers, &mut raw_bytes, ("bsp_step", 10, Transport::Tcp), &mut figures)?;
    steps::steps(&servers, &mut raw_bytes, ("bsp_step_socket", 20, Transport::Socket), &mut figures)?;
    let mut near = serde_json::Map::new();
    dense(&servers, &mut raw_bytes, Transport::Socket, &mut near)?;
    sparse(&servers, &mut raw_bytes, Transport::Socket, &mut near)?;
    for name in ["cpu_s_per_gb", "sparse_pull_ms", "sparse_push_ms"] {
        figures.insert(format!("{name}_socket"), near[name].clone());
    }
    Ok(Value::Object(figures))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    /// The Unix sockets of the servers, which agents of the same machine choose by themselves.
    Socket,
}

impl Transport {
    /// Opens a job with one task and returns its agent.
    fn agent(self, job: u32, servers: &[ChildServer], matrices: Vec<MatrixSpec>) -> Result<RemoteAgent> {
        let mut layout = open_job(job, servers, matrices, 1)?;
        self.set_addresses(&mut layout, servers);
        Ok(RemoteAgent::new(layout, 0, &[])?)
    }

    fn set_addresses(self, layout: &mut JobLayout, servers: &[ChildServer]) {
        if self == Transport::Socket {
            for (lane, server) in layout.lanes.iter_mut().zip(servers) {
                lane.addresses.extend(server.socket.clone());
            }
        }
    }
}

type Figures = serde_json::Map<String, Value>;
type RawTransfer<'a> = dyn FnMut(usize) -> Result<f64> + 'a;

/// Gigabytes that are sent while processor time is measured.
fn dense_gigabytes() -> f64 {
    (2 * CPU_ROUNDS) as f64 * DENSE_LEN as f64 * 4.0 / 1e9
}

/// 1M contiguous values at one server.
fn dense(
    servers: &[ChildServer],
    raw: &mut RawTransfer<'_>,
    over: Transport,
    figures: &mut Figures,
) -> Result<()> {
    let one = &servers[..1];
    let matrices = vec![spec("dense", Storage::Dense, 1, DENSE_LEN, Axis::Column)];
    let mut agent = over.agent(1, one, matrices)?;
    let part = Selection::Columns { row: 0, keys: Keys::Range(0, DENSE_LEN) };
    let first = Selection::Columns { row: 0, keys: Keys::Range(0, 1) };
    let mut out = vec![0.0f32; DENSE_LEN as usize];
    let ones = vec![1.0f32; DENSE_LEN as usize];
    let (mut pulls, mut pushes, mut raws) = (Vec::new(), Vec::new(), Vec::new());
    let (mut pull_ratios, mut push_ratios) = (Vec::new(), Vec::new());
    agent.push(DENSE, part, Values::F32(&ones))?;
    for _ in 0..ROUNDS {
        let r = raw(out.len() * 4)?;
        let pull = timed(|| Ok(agent.pull(DENSE, part, ValuesMut::F32(&mut out))?))?;
        let push = timed(|| {
            agent.push(DENSE, part, Values::F32(&ones))?;
            // The answer to the next pull proves that the push has arrived.
            Ok(agent.pull(DENSE, first, ValuesMut::F32(&mut [0.0]))?)
        })?;
        agent.tick()?;
        pull_ratios.push(pull / r);
        push_ratios.push(push / r);
        pulls.push(pull);
        pushes.push(push);
        raws.push(r);
    }
    let cpu = one[0].cpu_s()? + cpu_s("self")?;
    for _ in 0..CPU_ROUNDS {
        agent.pull(DENSE, part, ValuesMut::F32(&mut out))?;
        agent.push(DENSE, part, Values::F32(&ones))?;
        agent.tick()?;
    }
    agent.pull(DENSE, first, ValuesMut::F32(&mut [0.0]))?;
    let cpu = one[0].cpu_s()? + cpu_s("self")? - cpu;
    figures.insert("dense_pull".into(), json!([median(pulls), median(raws.clone()), median(pull_ratios)]));
    figures.insert("dense_push".into(), json!([median(pushes), median(raws), median(push_ratios)]));
    figures.insert("cpu_s_per_gb".into(), json!(cpu / dense_gigabytes()));
    drop(agent);
    close(1, one)
}

pub(super) fn close(job: u32, servers: &[ChildServer]) -> Result<()> {
    for server in servers {
        let message = CloseJob { request: 2, job, reason: "the measurement is over".into() };
        send_and_wait(server, &Message::CloseJob(message))?;
    }
    Ok(())
}

/// Sorted random keys of a sparse matrix, one list for each round and one more.
fn sparse_keys() -> Vec<Vec<u64>> {
    let mut random = math::random::stream(1, math::random::Purpose::Test, 0, 0);
    let list = |_| {
        let mut keys: Vec<u64> =
            (0..SPARSE_KEYS + SPARSE_KEYS / 10).map(|_| random.below(SPARSE_ROWS)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.truncate(SPARSE_KEYS);
        keys
    };
    (0..=ROUNDS).map(list).collect()
}

/// 1M sorted random keys of a sparse matrix on two servers.
fn sparse(
    servers: &[ChildServer],
    raw: &mut RawTransfer<'_>,
    over: Transport,
    figures: &mut Figures,
) -> Result<()> {
    let matrices = vec![
        spec("unused", Storage::Dense, 1, PARTITIONS.into(), Axis::Column),
        spec("sparse", Storage::Sparse, 1 << 63, 1, Axis::Row),
    ];
    let mut agent = over.agent(2, servers, matrices.clone())?;
    let mut store = LocalStore::new(LocalConfig { task_count: 1, wait_limit: Duration::from_mins(1) });
    for spec in matrices {
        store.create(spec)?;
    }
    let mut local = Arc::new(store).agent(0);
    let lists = sparse_keys();
    // Creates all rows, as after an epoch.
    let all: Vec<u64> = (0..SPARSE_ROWS).collect();
    for keys in all.chunks(1 << 20) {
        let ones = vec![1.0f32; keys.len()];
        agent.push(SPARSE, Selection::Rows(Keys::Sorted(keys)), Values::F32(&ones))?;
        local.push(SPARSE, Selection::Rows(Keys::Sorted(keys)), Values::F32(&ones))?;
        agent.tick()?;
    }
    let ones = vec![1.0f32; SPARSE_KEYS];
    let mut out = vec![0.0f32; SPARSE_KEYS];
    let (mut pulls, mut pushes, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for keys in &lists[..ROUNDS] {
        let part = Selection::Rows(Keys::Sorted(keys));
        let bytes = raw(12 * SPARSE_KEYS)?;
        let in_process = timed(|| Ok(local.pull(SPARSE, part, ValuesMut::F32(&mut out[..keys.len()]))?))?;
        pulls.push(timed(|| Ok(agent.pull(SPARSE, part, ValuesMut::F32(&mut out[..keys.len()]))?))?);
        bounds.push(bytes + in_process);
    }
    // No list of keys is the one of the last pull, so every push sends all of its keys.
    for keys in &lists[1..] {
        let part = Selection::Rows(Keys::Sorted(keys));
        pushes.push(timed(|| {
            agent.push(SPARSE, part, Values::F32(&ones[..keys.len()]))?;
            let first = Selection::Rows(Keys::Sorted(&keys[..1]));
            Ok(agent.pull(SPARSE, first, ValuesMut::F32(&mut [0.0]))?)
        })?);
        agent.tick()?;
    }
    let keys = &lists[0];
    let part = Selection::Rows(Keys::Sorted(keys));
    agent.pull(SPARSE, part, ValuesMut::F32(&mut out[..keys.len()]))?;
    let before = agent.stats();
    agent.pull(SPARSE, part, ValuesMut::F32(&mut out[..keys.len()]))?;
    let pulled = agent.stats();
    agent.push(SPARSE, part, Values::F32(&ones[..keys.len()]))?;
    let pushed = agent.stats();
    let n = keys.len() as f64;
    let each = |from: worker::AgentStats, to: worker::AgentStats| {
        (to.sent_bytes + to.received_bytes - from.sent_bytes - from.received_bytes) as f64 / n
    };
    figures.insert("sparse_pull_ms".into(), json!(1e3 * median(pulls)));
    figures.insert("sparse_push_ms".into(), json!(1e3 * median(pushes)));
    figures.insert("sparse_bound_ms".into(), json!(1e3 * median(bounds)));
    let again = each(before, pulled).max(each(pulled, pushed));
    figures.insert("bytes_again".into(), json!(again));
    drop(agent);
    close(2, servers)
}

/// Measures pulls of one key at a time, and many small pushes.
fn small(servers: &[ChildServer], raw: &mut RawTransfer<'_>, figures: &mut Figures) -> Result<()> {
    let one = &servers[..1];
    let matrices = vec![
        spec("unused", Storage::Dense, 1, PARTITIONS.into(), Axis::Column),
        spec("sparse", Storage::Sparse, 1 << 63, 1, Axis::Row),
    ];
    let mut agent = RemoteAgent::new(open_job(3, one, matrices, 1)?, 0, &[])?;
    let (mut pulls, mut pings) = (Vec::new(), Vec::new());
    for i in 0..PINGS as u64 {
        pings.push(raw(8)?);
        let key = [i % 64];
        let part = Selection::Rows(Keys::Sorted(&key));
        pulls.push(timed(|| Ok(agent.pull(SPARSE, part, ValuesMut::F32(&mut [0.0]))?))?);
    }
    let ratio = |share: f64| quantile(pulls.clone(), share) / quantile(pings.clone(), share);
    figures.insert(
        "pull_p50".into(),
        json!([quantile(pulls.clone(), 0.5), quantile(pings.clone(), 0.5), ratio(0.5)]),
    );
    figures.insert(
        "pull_p99".into(),
        json!([quantile(pulls.clone(), 0.99), quantile(pings.clone(), 0.99), ratio(0.99)]),
    );
    let ones = [1.0f32; SMALL_KEYS as usize];
    let lists: Vec<Vec<u64>> = (0..64u64).map(|i| (0..SMALL_KEYS).map(|k| i + 64 * k).collect()).collect();
    let mut rates = Vec::new();
    for _ in 0..3 {
        let seconds = timed(|| {
            for i in 0..SMALL_PUSHES {
                let part = Selection::Rows(Keys::Sorted(&lists[i as usize % lists.len()]));
                agent.push(SPARSE, part, Values::F32(&ones))?;
            }
            Ok(agent.pull(SPARSE, Selection::Rows(Keys::Sorted(&[0])), ValuesMut::F32(&mut [0.0]))?)
        })?;
        agent.tick()?;
        rates.push(f64::from(SMALL_PUSHES) / seconds);
    }
    figures.insert("small_pushes_per_s".into(), json!(median(rates)));
    drop(agent);
    close(3, one)
}
