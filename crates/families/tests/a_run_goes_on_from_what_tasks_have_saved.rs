//! A run that begins from saved states ends like the run that went through.

#![allow(clippy::unwrap_used, reason = "a test")]

use data::Batch;
use matrix::{Consistency, MatrixId};

use algo::task_loop::encode;
use algo::test_harness::{Harness, Record, Run, build, clicks};
use algo::{Error, TaskState};

const HARNESS: Harness = Harness(families::FAMILIES);

/// The records of [`clicks`] for three tasks, one of which has none.
fn three_tasks() -> Vec<Vec<Batch>> {
    let mut batches = clicks(3, 9, 20);
    for batch in &mut batches {
        batch.fields = (0..batch.entry_count() as u32).map(|entry| entry % 2).collect();
    }
    let rest = batches.split_off(4);
    vec![batches, Vec::new(), rest]
}

/// Records of points around three others.
fn points() -> Vec<Vec<Batch>> {
    let record = |i: u64| -> Record {
        let (x, y) = ((i * 7919 % 101) as f32 / 20.0, (i * 104_729 % 97) as f32 / 20.0);
        (0.0, vec![(i % 3 * 5, 4.0 + x), (2, y), (1 << 40, 1.0)])
    };
    let records: Vec<Record> = (0..240).map(record).collect();
    vec![build(&records[..90], 20), build(&records[90..], 20)]
}

/// The values and slots of all matrices.
fn matrices(run: &Run) -> Vec<matrix::RowBlock> {
    (0..).map_while(|id| run.store.export(MatrixId(id)).ok()).collect()
}

/// Trains, and trains again from each moment between two epochs.
fn assert_continues(algorithm: &str, settings: &str, tasks: &[Vec<Batch>]) {
    let name = format!("{algorithm} {settings}");
    let validation = tasks[0].clone();
    for validation in [None, Some(validation.as_slice())] {
        let whole =
            HARNESS.train(algorithm, settings, tasks.to_vec(), validation, Consistency::Bsp).expect(&name);
        let epoch_count = whole.training.len();
        assert!(epoch_count >= 3, "{name}: {epoch_count} epochs");
        assert_eq!(whole.moments.len(), epoch_count - 1, "{name}");
        for (epoch, moment) in (1..).zip(&whole.moments) {
            let run = HARNESS
                .train_from(moment, algorithm, settings, tasks.to_vec(), validation)
                .unwrap_or_else(|error| panic!("{name} from epoch {epoch}: {error}"));
            assert_eq!(run.training, whole.training[epoch..], "{name} from epoch {epoch}");
            assert_eq!(
                run.validation.as_slice(),
                whole.validation.get(epoch..).unwrap_or_default(),
                "{name}"
            );
            assert_eq!(matrices(&run), matrices(&whole), "{name} from epoch {epoch}");
            assert_eq!(run.notices, whole.notices, "{name} from epoch {epoch}");
        }
    }
}

#[test]
fn every_family_goes_on_from_what_was_saved_between_two_epochs() {
    for (algorithm, settings) in [
        ("lr", "epochs=4"),
        ("lr", "epochs=4 optimizer=sgd schedule=inverse_time"),
        ("lr", "epochs=3 optimizer=adam class_weights=balanced standardize=true"),
        ("softmax", "epochs=3 optimizer=adagrad"),
        ("lr", "optimizer=lbfgs l2=0.1 max_iterations=9 history=3"),
        ("lr", "optimizer=lbfgs l2=0.1 max_iterations=6 class_weights=balanced standardize=true"),
        ("lr", "optimizer=owlqn l1=0.5 max_iterations=7 history=2"),
        ("svm", "optimizer=gd loss=squared_hinge l2=1 max_iterations=5"),
        ("lr", "optimizer=svrg l2=1 max_iterations=5 learning_rate=0.05 tolerance=0"),
        ("lr", "optimizer=admm l1=0.2 l2=0.5 max_iterations=6 tolerance=0"),
        ("lr", "optimizer=admm l2=0.5 max_iterations=9 adaptive_rho=false"),
        ("fm", "epochs=3 k=2 admission=3"),
        ("fm", "epochs=3 k=4 optimizer=sgd linear_optimizer=sgd standardize=true"),
        ("ffm", "epochs=3 k=2"),
    ] {
        assert_continues(algorithm, settings, &three_tasks());
    }
    assert_continues("lda", "topics=3 sweeps=35", &three_tasks());
    for settings in [
        "k=5 max_iterations=6 tolerance=0",
        "k=7 max_iterations=5 tolerance=0 distance=cosine",
        "k=4 method=mini_batch epochs=3 batch_size=16",
    ] {
        assert_continues("kmeans", settings, &points());
    }
}

/// Trains, saves within epoch 0 at each clock of it, and trains again from there.
fn at_every_clock(algorithm: &str, settings: &str, tasks: &[Vec<Batch>]) {
    let name = format!("{algorithm} {settings}");
    let whole = HARNESS.train(algorithm, settings, tasks.to_vec(), None, Consistency::Bsp).expect(&name);
    let longest = tasks.iter().map(Vec::len).max().unwrap() as u64;
    for clock in 1..=longest {
        let saving = HARNESS.train_saving_at(clock, algorithm, settings, tasks.to_vec()).expect(&name);
        assert_eq!(matrices(&saving), matrices(&whole), "{name}: saving at clock {clock} changes nothing");
        assert_eq!(saving.training, whole.training, "{name} at clock {clock}");
        let moment = &saving.moments[0];
        assert!(moment.states[0].epoch == 0 && moment.clock >= clock, "{name} at clock {clock}");
        let run = HARNESS
            .train_from(moment, algorithm, settings, tasks.to_vec(), None)
            .unwrap_or_else(|error| panic!("{name} from clock {clock}: {error}"));
        assert_eq!(matrices(&run), matrices(&whole), "{name} from clock {clock}");
        assert_eq!(run.training, whole.training, "{name} from clock {clock}: the metrics of the whole epoch");
    }
}

#[test]
fn families_that_learn_batch_by_batch_go_on_from_within_an_epoch() {
    for (algorithm, settings) in [
        ("lr", "epochs=2"),
        ("lr", "epochs=1"),
        ("lr", "epochs=2 optimizer=sgd schedule=inverse_time"),
        ("lr", "epochs=2 optimizer=adam class_weights=balanced standardize=true"),
        ("softmax", "epochs=2 optimizer=adagrad"),
        ("fm", "epochs=2 k=2 admission=3"),
        ("ffm", "epochs=2 k=2"),
    ] {
        at_every_clock(algorithm, settings, &three_tasks());
    }
    at_every_clock("kmeans", "k=4 method=mini_batch epochs=3 batch_size=16", &points());
}

#[test]
fn data_that_have_lost_batches_since_the_state_was_saved_are_refused() {
    let saving = HARNESS.train_saving_at(4, "lr", "epochs=2", three_tasks()).unwrap();
    let mut fewer = three_tasks();
    fewer[2].truncate(3);
    let error = HARNESS.train_from(&saving.moments[0], "lr", "epochs=2", fewer, None).err().unwrap();
    assert!(matches!(error, Error::FewerBatches { task: 2, epoch: 0, expected: 4, actual: 3 }), "{error}");
}

/// The error of a run that begins with changed states.
fn refused(
    algorithm: &str,
    settings: &str,
    tasks: &[Vec<Batch>],
    change: impl Fn(&mut TaskState),
) -> (String, Error) {
    let whole = HARNESS.train(algorithm, settings, tasks.to_vec(), None, Consistency::Bsp).unwrap();
    let mut moment = whole.moments[0].clone();
    moment.states.iter_mut().for_each(change);
    let error = HARNESS.train_from(&moment, algorithm, settings, tasks.to_vec(), None).err();
    let error = error.expect("the state does not fit");
    (error.to_string(), error)
}

#[test]
fn a_state_that_does_not_fit_is_refused_with_the_reason() {
    let (text, error) = refused("lr", "epochs=3", &three_tasks(), |state| state.bytes = vec![0xc1]);
    assert!(matches!(error, Error::TaskState { .. }), "{text}");
    assert!(
        text.contains("of \"lr\" cannot be used") && text.contains("Continue with the program"),
        "{text}"
    );
    let (text, _) = refused("lr", "epochs=3", &three_tasks(), |state| state.bytes.push(7));
    assert!(text.contains("1 bytes follow its end"), "{text}");
    let (text, _) = refused("lr", "epochs=3", &three_tasks(), |state| state.algorithm = "fm".to_owned());
    assert!(text.contains("this job trains \"lr\""), "{text}");
    let (text, _) = refused("lr", "epochs=3", &three_tasks(), |state| state.task_count = 4);
    assert!(text.contains("of 4, and this is task") && text.contains("number of tasks"), "{text}");
    let settings = "k=5 max_iterations=6 tolerance=0";
    let one = encode(&(vec![0u32], vec![0.0], vec![0.0], vec![0.0; 25], [[0.0; 5]; 3], 0.0)).unwrap();
    let (text, _) = refused("kmeans", settings, &points(), |state| state.bytes.clone_from(&one));
    assert!(text.contains("cannot be used"), "{text}");
}

#[test]
fn a_state_of_other_data_is_refused() {
    let settings = "k=5 max_iterations=6 tolerance=0";
    let whole = HARNESS.train("kmeans", settings, points(), None, Consistency::Bsp).unwrap();
    let mut fewer = points();
    fewer[1].pop();
    let error = HARNESS.train_from(&whole.moments[0], "kmeans", settings, fewer, None).err().unwrap();
    assert!(
        error.to_string().contains("it has 150 records with 5 features, and the task reads 140"),
        "{error}"
    );
}
