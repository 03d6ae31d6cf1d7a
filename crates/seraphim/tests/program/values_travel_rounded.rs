//! Promise: with `--wire bf16` or `--wire int8` fewer bytes are sent and the model is as good. Under BSP the model does
//! not depend on the number of workers, and with bf16 not on the number of servers either. A job in one process sends
//! nothing, so it refuses these flags.
#![cfg(unix)]

use std::path::PathBuf;

use crate::common::cluster::Cluster;
use crate::common::metrics::{get, http, value};
use crate::common::{Folder, bytes_of, clicks, fail, number, real_data, succeed};

/// Largest difference of a metric on a9a from the model whose values were sent exactly.
const BAND: f64 = 0.001;

fn train(
    folder: &Folder,
    name: &str,
    wire: &str,
    (servers, workers): (&str, &str),
) -> Vec<(PathBuf, Vec<u8>)> {
    let (data, model) = (folder.path("train.libsvm"), folder.path(name));
    let fixed = ["train", "lr", "--data", &data, "--model", &model, "--tasks", "4", "--quiet"];
    let size = ["--wire", wire, "--servers", servers, "--workers", workers, "--set", "epochs=2"];
    succeed(&[&fixed[..], &size].concat());
    bytes_of(&model)
}

#[test]
fn a_bsp_model_is_the_same_on_any_workers_and_with_bf16_on_any_servers() {
    let folder = Folder::new();
    folder.write("train.libsvm", clicks(3000, 1));
    let exact = train(&folder, "exact", "f32", ("1", "1"));
    let bf16 = train(&folder, "bf16", "bf16", ("1", "1"));
    assert!(bf16 != exact, "it was rounded");
    assert!(train(&folder, "bf16_2_1", "bf16", ("2", "1")) == bf16, "two servers");
    assert!(train(&folder, "bf16_3_2", "bf16", ("3", "2")) == bf16, "three servers, two workers");
    let int8 = train(&folder, "int8", "int8", ("2", "1"));
    assert!(int8 != exact && int8 != bf16, "it was rounded");
    assert!(train(&folder, "int8_2_2", "int8", ("2", "2")) == int8, "two workers");
}

#[test]
fn in_one_process_nothing_travels_and_so_it_is_refused() {
    let folder = Folder::new();
    let data = folder.write("train.libsvm", clicks(100, 1));
    let model = folder.path("model");
    let text = fail(2, &["train", "lr", "--data", &data, "--model", &model, "--wire", "int8"]);
    assert!(text.contains("--wire int8 in one process") && text.contains("--servers N"), "{text}");
    let text = fail(2, &["train", "lr", "--data", &data, "--model", &model, "--wire", "f16"]);
    assert!(text.contains("f32 | bf16 | int8"), "{text}");
    succeed(&["train", "lr", "--data", &data, "--model", &model, "--wire", "f32"]);
}

/// Bytes of values that left the server, and all bytes in and out, of a job on a cluster with one server.
fn traffic(folder: &Folder, data: &str, wire: &str) -> (f64, f64) {
    let cluster = Cluster::start(1, 1, 0);
    let model = folder.path(&format!("model_{wire}"));
    let job = ["lr", "--data", data, "--model", &model, "--tasks", "2", "--wire", wire, "--set", "epochs=2"];
    let (code, _, error) = cluster.submit(&job).end();
    assert_eq!(code, Some(0), "{error}");
    let status = cluster.wait_until(|_| true);
    let members = status["members"].as_array().expect("it is a list");
    let server = members.iter().find(|entry| entry["member"]["kind"] == "server").expect("there is one");
    let address = server["member"]["addresses"][0].as_str().expect("it says where it is");
    let metrics = get(&http(address), "/metrics");
    let counted = |name: &str| value(&metrics, name, &[]);
    let both = counted("seraphim_rpc_bytes_in_total") + counted("seraphim_rpc_bytes_out_total");
    (counted("seraphim_value_bytes_out_total"), both)
}

#[test]
fn fewer_bytes_travel() {
    let folder = Folder::new();
    let output = folder.path("clicks");
    succeed(&["generate", "ctr", "--rows", "20000", "--dimensions", "200000", "--output", &output]);
    let data = format!("{output}/train.libsvm");
    let [exact, bf16, int8] = ["f32", "bf16", "int8"].map(|wire| traffic(&folder, &data, wire));
    println!("bytes of values out, of all: f32 {exact:?}, bf16 {bf16:?}, int8 {int8:?}");
    assert_eq!(bf16.0 * 2.0, exact.0, "two bytes a value");
    assert!(int8.0 < exact.0 * 0.3, "one byte a value, and the scales");
    assert!(int8.1 < bf16.1 && bf16.1 < exact.1, "of all bytes too");
}

#[test]
fn a9a_is_learnt_as_well() {
    let Some(root) = real_data("a9a") else { return };
    let file = |name: &str| root.join(name).to_str().expect("it is text").to_owned();
    let folder = Folder::new();
    let evaluated: Vec<[f64; 2]> = ["f32", "bf16", "int8"]
        .map(|wire| {
            let model = folder.path(wire);
            let data = file("train.libsvm.gz");
            let job = ["train", "lr", "--data", &data, "--model", &model, "--tasks", "4", "--quiet"];
            succeed(&[&job[..], &["--servers", "2", "--workers", "2", "--wire", wire]].concat());
            let test = file("test.libsvm.gz");
            let metrics = succeed(&["evaluate", "--model", &model, "--data", &test, "--json"]);
            println!("{wire}: {}", metrics.trim());
            ["/metrics/auc", "/metrics/log_loss"].map(|name| number(&metrics, name))
        })
        .into();
    for rounded in &evaluated[1..] {
        for (exact, rounded) in evaluated[0].iter().zip(rounded) {
            assert!((exact - rounded).abs() <= BAND, "{evaluated:?}");
        }
    }
}
