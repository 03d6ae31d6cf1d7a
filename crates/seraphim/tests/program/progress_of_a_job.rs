//! What a listener hears of a training: the scan before the first epoch, then steps, each once.

use std::sync::{Arc, Mutex};

use algo::Epochs;
use data::FormatTable;
use engine::Environment;
use engine::interrupt::Interrupt;
use engine::job::TrainJob;
use engine::job::keys::{JobCommand, find};
use engine::job::raw::RawJob;
use engine::program::THIS_PROGRAM;
use engine::progress::ProgressListener;
use engine::report::EpochLine;
use engine::runtime::local;

use crate::common::{Folder, clicks};

const RECORDS: u64 = 3000;
const EPOCHS: u64 = 40;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Started(Option<u64>),
    Scanned(u64),
    Records(u64),
    Bytes(u64),
    Step(u64),
    EpochDone(u64),
}

#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Told>>);

impl Recorder {
    fn add(&self, told: Told) {
        self.0.lock().expect("no test panics in it").push(told);
    }
}

impl ProgressListener for Recorder {
    fn started(&self, size_bytes: Option<u64>, _: Epochs) {
        self.add(Told::Started(size_bytes));
    }
    fn add_bytes(&self, count: u64) {
        self.add(Told::Bytes(count));
    }
    fn add_scanned_bytes(&self, byte_count: u64) {
        self.add(Told::Scanned(byte_count));
    }
    fn scanned(&self, record_count: u64) {
        self.add(Told::Records(record_count));
    }
    fn step(&self, record_count: u64, _: f64) {
        self.add(Told::Step(record_count));
    }
    fn epoch_done(&self, _: u64, line: &EpochLine) {
        self.add(Told::EpochDone(line.epoch));
    }
}

/// Trains in this process; returns the size of the data and what was told.
fn trained(algorithm: &str, settings: &[&str]) -> (u64, Vec<Told>) {
    let folder = Folder::new();
    let text = clicks(RECORDS, 1);
    let size = text.len() as u64;
    let data = folder.write("a.libsvm", text);
    let mut raw = RawJob::new();
    raw.algorithm = Some(algorithm.to_owned());
    let set = settings.iter().map(|text| (*text).to_owned()).chain([format!("epochs={EPOCHS}")]).collect();
    for (name, values) in [("data", vec![data]), ("model", vec![folder.path("model")]), ("set", set)] {
        raw.set_option(find(JobCommand::Train, name).expect("it is a key"), values);
    }
    let families = families::all();
    let job = TrainJob::check(&raw, &families).expect("it can be trained");
    let (formats, functions, interrupt) = (FormatTable::builtin(), families::functions(), Interrupt::new());
    let environment = Environment {
        formats: &formats,
        families: &families,
        functions: &functions,
        interrupt: &interrupt,
        program: &THIS_PROGRAM,
    };
    let recorder = Arc::new(Recorder::default());
    local::train(&job, environment, recorder.clone()).expect("it is trained");
    let told = recorder.0.lock().expect("no test panics in it").clone();
    (size, told)
}

fn sum(told: &[Told], of: impl Fn(&Told) -> Option<u64>) -> u64 {
    told.iter().filter_map(of).sum()
}

#[test]
fn a_scan_is_told_before_the_first_step_and_never_again() {
    for (algorithm, settings, scans) in [
        ("lr", &["optimizer=ftrl", "standardize=false"][..], false),
        ("lr", &["optimizer=ftrl", "standardize=true"], true),
        ("softmax", &["optimizer=ftrl", "standardize=false"], true),
    ] {
        let (size, told) = trained(algorithm, settings);
        assert_eq!(told[0], Told::Started(Some(size)));
        let is_step = |told: &Told| matches!(told, Told::Step(1..));
        let first = told.iter().position(is_step).expect("there are steps");
        let scanned = |told: &Told| if let Told::Scanned(bytes) = told { Some(*bytes) } else { None };
        assert_eq!(sum(&told[..first], scanned), if scans { size } else { 0 }, "{algorithm} {settings:?}");
        assert!(!told.contains(&Told::Scanned(0)), "nothing is not told");
        assert_eq!(told[..first].contains(&Told::Records(RECORDS)), scans, "{algorithm} {settings:?}");
        assert_eq!(told[first..].iter().find_map(scanned), None, "{algorithm} {settings:?}");
        let records = sum(&told, |told| if let Told::Step(records) = told { Some(*records) } else { None });
        assert_eq!(records, RECORDS * EPOCHS);
        let read = sum(&told, |told| if let Told::Bytes(bytes) = told { Some(*bytes) } else { None });
        assert_eq!(
            read,
            if scans { 0 } else { size },
            "{algorithm} {settings:?}: epochs read from the cache"
        );
        let ended = told
            .iter()
            .filter_map(|told| if let Told::EpochDone(epoch) = told { Some(*epoch) } else { None });
        assert!(ended.eq(0..EPOCHS));
    }
}
