//! Promise: what users have rated or chosen becomes a model of the same bytes for any tasks, servers and workers, and the model
//! recommends exactly as many items as were asked for, none of which a user has.

use std::collections::BTreeSet;

use crate::common::{Folder, bytes_of, fail, succeed};

const USERS: usize = 40;
const ITEMS: usize = 25;

/// A user likes the items of its half, and has rated four of five.
fn ratings() -> String {
    let line = |user: usize, item: usize| {
        let rating = if user % 2 == item % 2 { 5 } else { 1 };
        format!("ann{user},\"tea {item}\",{rating},{}\n", user + item)
    };
    let lines = (0..USERS).flat_map(|user| rated(user).map(move |item| line(user, item)));
    std::iter::once("user,item,rating,day\n".to_owned()).chain(lines).collect::<Vec<_>>().concat()
}

fn rated(user: usize) -> impl Iterator<Item = usize> {
    (0..ITEMS).filter(move |item| !(user * 7 + item).is_multiple_of(5))
}

/// The items that a user likes, as lines of a user with its items.
fn baskets() -> String {
    let line = |user: usize| {
        let items = rated(user).filter(|item| user % 2 == item % 2);
        let names: Vec<String> = items.map(|item| format!("tea{item}")).collect();
        format!("ann{user} {}\n", names.join(" "))
    };
    (0..USERS).map(line).collect::<Vec<_>>().concat()
}

fn train(folder: &Folder, algorithm: &str, data: &str, extra: &[&str]) -> String {
    let model = folder.path(&format!("model{}", extra.join("").replace(['-', '='], "")));
    let shared = ["train", algorithm, "--data", data, "--model", &model, "--set", "factors=4"];
    succeed(&[&shared[..], &["--set", "iterations=4"], extra].concat());
    model
}

fn weights(model: &str) -> Vec<u8> {
    let mut files = bytes_of(model).into_iter();
    files.find(|(path, _)| path.ends_with("weights.safetensors")).expect("every model has weights").1
}

/// The user and the item of each line of a list.
fn pairs(csv: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[0].to_owned(), fields[1].to_owned())
    };
    csv.lines().skip(1).map(pair).collect()
}

#[test]
fn a_model_has_the_same_bytes_for_any_tasks_servers_and_workers() {
    let folder = Folder::new();
    let data = folder.write("ratings.csv", ratings());
    let first = train(&folder, "als", &data, &["--tasks", "1"]);
    for extra in [&["--tasks", "3"][..], &["--tasks", "2", "--servers", "2", "--workers", "2"]] {
        assert!(weights(&first) == weights(&train(&folder, "als", &data, extra)), "{extra:?}");
    }
    let text = succeed(&["evaluate", "--model", &first, "--data", &data, "--json"]);
    let rmse: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(rmse["metrics"]["rmse"].as_f64().is_some_and(|rmse| rmse < 0.6), "{text}");
}

#[test]
fn users_get_exactly_so_many_items_that_they_do_not_have() {
    let folder = Folder::new();
    let data = folder.write("baskets.adjacency", baskets());
    let model = train(&folder, "ials", &data, &["--tasks", "2"]);
    let seen: BTreeSet<(String, String)> = baskets()
        .lines()
        .flat_map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let user = words.next().unwrap();
            words.map(move |item| (user.clone(), item)).collect::<Vec<_>>()
        })
        .collect();
    let csv = succeed(&["recommend", &model, "--top", "3", "--output", "-"]);
    let lists = pairs(&csv);
    assert_eq!(lists.len(), USERS * 3);
    assert!(lists.iter().all(|pair| !seen.contains(pair)), "{csv}");
    let kept = pairs(&succeed(&["recommend", &model, "--keep-seen", "--top", "3", "--output", "-"]));
    assert!(kept.iter().filter(|pair| seen.contains(*pair)).count() > USERS, "what they like best they have");
    // A new user that has items of one half gets more of them; one without items gets the most popular.
    let new = folder.write("new.adjacency", "bob tea1 tea3 tea5\n");
    let users = folder.write("users", "bob\ncarl\n");
    let items = folder.write("items", "tea7\ntea9\ntea8\nno such tea\n");
    let csv = succeed(&[
        "recommend",
        &model,
        "--seen",
        &new,
        "--users",
        &users,
        "--items",
        &items,
        "--top",
        "2",
        "--output",
        "-",
    ]);
    let lists = pairs(&csv);
    let of_bob: BTreeSet<&str> = lists[..2].iter().map(|(_, item)| &item[..]).collect();
    assert_eq!(of_bob, BTreeSet::from(["tea7", "tea9"]), "{csv}");
    assert!(lists.len() == 4 && lists[2].0 == "carl", "{csv}");
    let later = folder.write("later.adjacency", "bob tea7\nann0 tea2\n");
    let text = succeed(&["recommend", &model, "--seen", &new, "--test", &later, "--top", "5"]);
    assert!(text.contains("most popular") && text.contains("ndcg") && text.contains("hits / n"), "{text}");
    let csv = succeed(&["recommend", &model, "--similar-to", &items, "--top", "4", "--output", "-"]);
    assert_eq!(pairs(&csv).len(), 3 * 4, "one item is not in the model: {csv}");
}

#[test]
fn neighbors_have_the_same_bytes_everywhere_and_recommend_to_old_and_new_users() {
    let folder = Folder::new();
    let data = folder.write("baskets.adjacency", baskets());
    let new = folder.write("new.adjacency", "bob tea1 tea3 tea5\n");
    let users = folder.write("users", "ann3\nbob\n");
    for algorithm in ["itemknn", "ease"] {
        let model = |name: &str, extra: &[&str]| {
            let model = folder.path(&format!("{algorithm}{name}"));
            let shared = ["train", algorithm, "--data", &data, "--model", &model, "--quiet"];
            let held = ["--set", "validation_share=0.2", "--json"];
            let report = succeed(&[&shared[..], &held, extra].concat());
            assert!(report.contains("ndcg@20"), "{report}");
            model
        };
        let first = model("1", &["--tasks", "1"]);
        assert!(weights(&first) == weights(&model("3", &["--tasks", "3"])), "{algorithm}");
        let servers = model("s", &["--tasks", "2", "--servers", "2", "--workers", "2"]);
        assert!(weights(&first) == weights(&servers), "{algorithm}");
        let shared = ["recommend", &first, "--seen", &new, "--users", &users, "--top", "3", "--output"];
        let lists = pairs(&succeed(&[&shared[..], &["-"]].concat()));
        let odd = |item: &str| item.trim_start_matches("tea").parse::<usize>().unwrap() % 2 == 1;
        assert!(lists.len() == 6 && lists.iter().all(|(_, item)| odd(item)), "{algorithm}: {lists:?}");
        let table = folder.path(&format!("{algorithm}.parquet"));
        succeed(&[&shared[..], &[&table]].concat());
        assert!(std::fs::read(&table).unwrap().starts_with(b"PAR1"));
        let pair = folder.write("pair.adjacency", "ann3 tea5\n");
        let scores = succeed(&["predict", "--model", &first, "--data", &pair, "--output", "-"]);
        let score: f64 = scores.lines().nth(1).unwrap().trim().parse().unwrap();
        assert!(score > 0.0, "{scores}");
    }
}

#[test]
fn a_training_that_continues_learns_from_the_new_pairs_alone_and_neighbors_do_not_continue() {
    let folder = Folder::new();
    let first = folder.write("first.csv", "user,item\nann,a\nann,b\nbob,a\nbob,c\n");
    let second = folder.write("second.csv", "user,item\nann,d\ndan,a\ndan,d\n");
    for algorithm in ["ials", "bpr", "itemknn"] {
        let (one, two) = (folder.path(algorithm), folder.path(&format!("{algorithm}2")));
        succeed(&["train", algorithm, "--data", &first, "--model", &one, "--quiet"]);
        let next = ["train", algorithm, "--data", &second, "--from", &one, "--model", &two, "--quiet"];
        if algorithm == "itemknn" {
            let message = fail(3, &next);
            assert!(message.contains("leave --from out"), "{message}");
            continue;
        }
        succeed(&next);
        let lists = pairs(&succeed(&["recommend", &two, "--top", "4", "--output", "-"]));
        // What a user had in the earlier training it still has.
        assert!(
            !lists.contains(&("ann".into(), "a".into())) && lists.contains(&("ann".into(), "c".into())),
            "{lists:?}"
        );
    }
    let both = ["train", "ials", "--data", &first, "--validate", &second, "--set", "validation_share=0.5"];
    let message = fail(3, &[&both[..], &["--model", &folder.path("both")]].concat());
    assert!(message.contains("leave one of them out"), "{message}");
}

#[test]
fn what_cannot_be_learned_says_where_and_what_to_do() {
    let folder = Folder::new();
    let model = folder.path("model");
    let fails = |code: i32, data: &str, extra: &[&str]| {
        fail(code, &[&["train", "als", "--data", data, "--model", &model][..], extra].concat())
    };
    let bad = folder.write("bad.csv", ratings().replacen(",5,", ",five,", 1));
    let error = fails(3, &bad, &[]);
    assert!(error.contains("bad.csv") && error.contains("five"), "{error}");
    let data = folder.write("ratings.csv", ratings());
    let error = fails(2, &data, &["--user", "uesr"]);
    assert!(error.contains("uesr") && error.contains("user"), "{error}");
    let error = fails(2, &data, &["--validate-from", "30"]);
    assert!(error.contains("--time"), "{error}");
    let error = fail(2, &["train", "lr", "--data", &data, "--model", &model, "--user", "user"]);
    assert!(error.contains("als"), "{error}");
    let lr = folder.path("lr");
    let rows = folder.write("rows.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n");
    succeed(&["train", "lr", "--data", &rows, "--model", &lr]);
    let error = fail(2, &["recommend", &lr, "--output", "-"]);
    assert!(error.contains("no users and items"), "{error}");
    let good = train(&folder, "als", &data, &["--time", "day", "--validate-from", "50"]);
    let error = fail(2, &["recommend", &good]);
    assert!(error.contains("--output") && error.contains("--test"), "{error}");
}
