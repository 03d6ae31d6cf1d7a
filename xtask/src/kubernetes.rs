//! `cargo xtask kubernetes`: jobs on a real cluster of two nodes, whose pods and nodes go away. The folder of `SERAPHIM_KUBERNETES_KIT`
//! starts it: its `build.sh` makes a program of all parts of Kubernetes in the folder of `K8S_BIN`, and `up.sh --nodes 2` starts it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command::{Cmd, is_available};
use crate::metadata;

/// Where the kit is if nothing names it.
const KIT: &str = "../shared/kubernetes";
const IMAGE: &str = "docker.io/seraphim/seraphim:test";
const TARGET: &str = "x86_64-unknown-linux-gnu";
const FEATURES: &str = "kubernetes,parquet";

/// Starts a cluster and runs the tests with it.
pub(crate) fn run(root: &Path) -> Result<()> {
    let kit = std::env::var_os("SERAPHIM_KUBERNETES_KIT").map_or_else(|| root.join(KIT), PathBuf::from);
    if let Some(missing) = missing(&kit) {
        println!("SKIPPED: the tests on Kubernetes, because {missing}");
        return Ok(());
    }
    let folder = metadata::target_folder(root)?.join("kubernetes");
    let programs = std::env::var_os("K8S_BIN").map_or_else(|| folder.join("bin"), PathBuf::from);
    let cluster = Cluster { kit, folder, programs };
    let result = cluster.start(root).and_then(|()| cluster.test(root));
    let down = cluster.script("down.sh").run();
    result.and(down)
}

fn missing(kit: &Path) -> Option<String> {
    if !kit.join("up.sh").exists() {
        return Some(format!(
            "there is no {}: SERAPHIM_KUBERNETES_KIT names the folder",
            kit.join("up.sh").display()
        ));
    }
    if !is_available("go", &["version"]) {
        return Some("there is no go here".into());
    }
    if !is_available("sh", &["-c", "test $(id -u) = 0"]) {
        return Some("nodes need root".into());
    }
    let nodes = ["containerd", "ctr", "runc", "ip"];
    let absent =
        nodes.into_iter().find(|program| !is_available("sh", &["-c", &format!("command -v {program}")]));
    absent.map(|program| format!("there is no {program} here"))
}

struct Cluster {
    kit: PathBuf,
    folder: PathBuf,
    /// Where the programs of the kit are built.
    programs: PathBuf,
}

impl Cluster {
    fn script(&self, name: &str) -> Cmd {
        let script = Cmd::new(self.kit.join(name), &self.folder);
        script.env("K8S_BIN", &self.programs).env("K8S_STATE", self.folder.join("state"))
    }

    fn kubectl(&self, words: &str) -> Cmd {
        let program = Cmd::new(self.folder.join("bin/kubectl"), &self.folder);
        program.args(words.split_whitespace()).env("KUBECONFIG", self.configuration())
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("state/admin.kubeconfig")
    }

    /// Starts two nodes with the image, a namespace of the strictest rules, and a volume.
    fn start(&self, root: &Path) -> Result<()> {
        fs::create_dir_all(self.folder.join("bin"))?;
        self.script("build.sh").run()?;
        let kubectl = self.folder.join("bin/kubectl");
        fs::write(&kubectl, format!("#!/bin/sh\nexec {}/k8s kubectl \"$@\"\n", self.programs.display()))?;
        fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755))?;
        self.script("down.sh").run()?;
        self.script("up.sh").args(["--nodes", "2"]).run()?;
        let build =
            format!("build -p seraphim --no-default-features --features {FEATURES} --target {TARGET}");
        Cmd::cargo(root, &build).env("RUSTFLAGS", "-C target-feature=+crt-static").run()?;
        let program = metadata::target_folder(root)?.join(TARGET).join("debug/seraphim");
        let stripped = self.folder.join("seraphim");
        Cmd::new("strip", root).args([Path::new("-o"), &stripped, &program]).run()?;
        let archive = self.folder.join("image.tar");
        Cmd::new("deploy/image.sh", root).args([Path::new(IMAGE), &archive, &stripped]).run()?;
        for node in ["1", "2"] {
            let socket = self.folder.join(format!("state/node{node}/containerd.sock"));
            let words = ["-n", "k8s.io", "images", "import"];
            Cmd::new("ctr", root).args([Path::new("-a"), &socket]).args(words).args([&archive]).run()?;
        }
        self.create_volume()?;
        self.create_account()
    }

    fn volume(&self) -> PathBuf {
        self.folder.join("volume")
    }

    /// Both nodes are this machine, so one folder is a volume of both.
    fn create_volume(&self) -> Result<()> {
        if self.volume().exists() {
            fs::remove_dir_all(self.volume())?;
        }
        fs::create_dir_all(self.volume())?;
        let objects = format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: data}}\nspec:\n  capacity: {{storage: 1Gi}}\n  \
             accessModes: [ReadWriteMany]\n  storageClassName: manual\n  hostPath: {{path: {}}}\n---\napiVersion: v1\nkind: \
             PersistentVolumeClaim\nmetadata: {{name: data}}\nspec:\n  accessModes: [ReadWriteMany]\n  storageClassName: manual\n  \
             resources: {{requests: {{storage: 1Gi}}}}\n",
            self.volume().display()
        );
        let file = self.folder.join("volume.yaml");
        fs::write(&file, objects)?;
        self.kubectl("label namespace default pod-security.kubernetes.io/enforce=restricted").run()?;
        self.kubectl("apply -f volume.yaml").run()
    }

    /// An account without rights, as a context of the configuration.
    fn create_account(&self) -> Result<()> {
        self.kubectl("create serviceaccount nobody").run()?;
        let token = self.kubectl("create token nobody").output()?;
        self.kubectl("config set-credentials nobody")
            .args([format!("--token={}", token.trim())])
            .run_quietly()?;
        self.kubectl("config set-context nobody --cluster=kit --user=nobody --namespace=default").run()
    }

    fn test(&self, root: &Path) -> Result<()> {
        for golden in [
            "deploy/helm/goldens/default.yaml",
            "deploy/helm/goldens/full.yaml",
            "crates/kubernetes/goldens/job.yaml",
        ] {
            let words = "apply --dry-run=server --validate=strict -f";
            self.kubectl(words).args([root.join(golden)]).run()?;
        }
        let path = std::env::var_os("PATH").context("there is no PATH")?;
        let path = std::env::join_paths(
            std::iter::once(self.folder.join("bin")).chain(std::env::split_paths(&path)),
        )?;
        let words = format!(
            "test -p seraphim --no-default-features --features {FEATURES} --test program -- --include-ignored --test-threads=1 \
             --nocapture runs_on_kubernetes"
        );
        Cmd::cargo(root, &words)
            .env("PATH", path)
            .env("KUBECONFIG", self.configuration())
            .env("SERAPHIM_KUBERNETES_IMAGE", IMAGE)
            .env("SERAPHIM_KUBERNETES_VOLUME", self.volume())
            .env("SERAPHIM_KUBERNETES_KIT", &self.kit)
            .env("K8S_BIN", &self.programs)
            .env("K8S_STATE", self.folder.join("state"))
            .run()
    }
}
