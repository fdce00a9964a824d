//! A cluster's methods and its end, with a server.
#![cfg(unix)]

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use understudy::{Client, Content, Disconnect, Effect, Error, Fault, JournalQuery, NewRecord, builder, start};

const TWO_BROKERS: [&str; 4] = ["--brokers", "2", "--topic", "orders:1"];

#[test]
fn a_cluster_is_as_just_started() {
    let mut seen = HashSet::new();
    for _ in 0..2 {
        let kafka = start(["--topic", "orders:1", "--seed", "1"]).unwrap();
        assert!(seen.insert(kafka.bootstrap_servers()), "clients of the test before must not come back");
        assert_eq!(kafka.records("orders", 0).unwrap().len(), 0);
        kafka.write("orders", ["one order"]).unwrap();
        assert_eq!(kafka.records("orders", 0).unwrap()[0].text(), Some("one order"));
    }
}

#[test]
fn tests_share_a_cluster_only_one_after_the_other() {
    let options = ["--seed", "2"];
    let first = start(options).unwrap();
    let second = start(options).unwrap();
    assert_ne!(first.control(), second.control());
    assert_eq!(first.pid(), second.pid(), "one process makes both clusters");
    let (pid, control) = (first.pid(), first.control().to_owned());
    drop(first);
    assert_eq!(start(options).unwrap().control(), control);
    assert_ne!(builder().seed(2).separate().start().unwrap().pid(), pid);
    let with_settings = || start(["--topic", "orders:1:retention.ms=1000"]).unwrap();
    let (own, other) = (with_settings(), with_settings());
    assert_ne!(own.pid(), other.pid(), "the shared server has no topics with settings");
}

#[test]
fn a_fresh_cluster_ends_with_its_test() {
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let kafka = builder().topic("orders:1").fresh().start().unwrap();
        kafka.write("orders", ["one order"]).unwrap();
        assert_eq!(kafka.records("orders", 0).unwrap().len(), 1);
        assert!(seen.insert(kafka.control().to_owned()), "a cluster was used again");
        let later = kafka.client();
        drop(kafka);
        assert_eq!(later.write("orders", ["late"]).unwrap_err().status(), Some(410));
    }
}

#[test]
fn methods_steer_the_cluster() {
    let kafka = start(TWO_BROKERS).unwrap();
    assert_eq!(kafka.brokers().len(), 2);
    let before = kafka.freeze().unwrap();
    assert!(before.frozen);
    let after = kafka.advance(Duration::from_secs(900)).unwrap();
    assert_eq!(after.now_ms - before.now_ms, 900_000);
    assert_eq!(kafka.advance(Duration::from_nanos(1)).unwrap().now_ms - after.now_ms, 1);
    assert!(!kafka.thaw().unwrap().frozen);
    assert!(kafka.clock().unwrap().ahead_ms > 0);
    kafka.kill_broker(2).unwrap();
    kafka.start_broker(2).unwrap();
    kafka.stop_broker(2).unwrap();
    kafka.start_broker(2).unwrap();
    kafka.pause_broker(2).unwrap();
    kafka.resume_broker(2).unwrap();
    kafka.set_version("3.9").unwrap();
    assert_eq!(kafka.ask("GET", "/v1/versions", None).unwrap()["as_version"], "3.9");
    assert!(kafka.ask("GET", "/metrics", None).unwrap().as_str().unwrap().contains("# TYPE"));
    kafka.move_group_coordinator("shipping", 2).unwrap();
    kafka.move_transaction_coordinator("payments", 2).unwrap();
    let report = kafka.report().unwrap();
    assert!(report.text.starts_with("last requests:"), "{}", report.text);
    assert!(kafka.report_since(report.now_ms).unwrap().requests.is_empty());
    let conditions = JournalQuery { api: Some("Fetch".into()), limit: Some(1), ..JournalQuery::default() };
    assert!(kafka.journal(&conditions).unwrap().is_empty());
    let other = Client::connect(&format!("{}/", kafka.control()), None).unwrap();
    assert_eq!(other.brokers(), kafka.brokers());
}

#[test]
fn topics_and_records_are_written_and_read() {
    let kafka = start(TWO_BROKERS).unwrap();
    kafka.create_topic("payments", 2).unwrap();
    kafka.configure_topic("payments", [("retention.ms", "60000")]).unwrap();
    assert_eq!(kafka.topic("payments").unwrap()["configs"]["retention.ms"], "60000");
    kafka.move_leader("payments", 0, Some(1)).unwrap();
    kafka.set_isr("payments", 0, &[1]).unwrap();
    let full = NewRecord::value(&b"\xff"[..]).key("k").header("h", "v").partition(1).timestamp_ms(5);
    let written = kafka.write("payments", [full, NewRecord::default().key("k").partition(1)]).unwrap();
    assert_eq!((written[0].partition, written[0].offset, written[1].offset), (1, 0, 1));
    let records = kafka.records("payments", 1).unwrap();
    assert_eq!(records[0].value.as_ref().map(Content::to_vec), Some(vec![0xff]));
    assert_eq!((records[0].text(), &records[0].key, records[0].timestamp_ms), (None, &Some("k".into()), 5));
    assert_eq!((&*records[0].headers[0].key, &records[0].headers[0].value), ("h", &Some("v".into())));
    assert_eq!(records[1].value, None);
    assert_eq!(kafka.records_from("payments", 1, -1, 10).unwrap().len(), 1);

    let snapshot = kafka.snapshot().unwrap();
    kafka.delete_topic("payments").unwrap();
    kafka.restore(&snapshot).unwrap();
    assert_eq!(kafka.records("payments", 1).unwrap().len(), 2);
    kafka.reset_keeping(&["topics"]).unwrap();
    assert_eq!(kafka.records("payments", 1).unwrap().len(), 2);
}

#[test]
fn faults_are_added_found_and_removed() {
    let kafka = start(TWO_BROKERS).unwrap();
    let lost = Effect::apply_then(Effect::disconnect(Disconnect::Reset));
    let fault = Fault::new(lost).api("Produce").topic("orders").partition(0).offset(3).versions(3, 9).always();
    let first = kafka.add_fault(fault).unwrap();
    assert_eq!((first.hits, first.remaining, first.conditions.versions), (0, None, Some((3, 9))));
    let second = Fault::new(Effect::error("NOT_COORDINATOR")).api("EndTxn").request("committed", true).broker(1);
    let second =
        kafka.add_fault(second.listener("PLAINTEXT").client_id("c").skip(1).times(2).probability(0.5)).unwrap();
    assert_eq!(second.remaining, Some(2));
    for effect in [
        Effect::drop(),
        Effect::delay(Duration::from_millis(5)),
        Effect::delay_response(Duration::from_millis(5)),
        Effect::throttle(Duration::from_millis(5)),
        Effect::alter([("throttle_time_ms", 7)]),
        Effect::bytes(json!({"truncate": 10})),
    ] {
        let added = kafka.add_fault(Fault::new(effect.clone()).api("Heartbeat").group("g")).unwrap();
        assert_eq!(added.effect, effect);
        kafka.remove_fault(&added).unwrap();
    }
    kafka.add_fault(Fault::new(Effect::drop()).api("EndTxn").transactional_id("x")).unwrap();
    assert_eq!(kafka.faults().unwrap(), kafka.unmet_faults().unwrap());
    assert_eq!(kafka.wait_hits(&first, 0, Duration::ZERO).unwrap().id, first.id);
    let late = kafka.wait_hits(&first, 1, Duration::from_millis(10)).unwrap_err();
    assert_eq!(late.to_string(), "0 of 1 requests met the fault within 10ms");
    kafka.clear_faults().unwrap();
}

#[test]
fn a_refusal_is_one_sentence() {
    let kafka = start(TWO_BROKERS).unwrap();
    let refused = kafka.add_fault(Fault::new(Effect::drop()).api("EndTx")).unwrap_err();
    assert_eq!(refused.status(), Some(422));
    assert!(refused.to_string().contains("EndTxn") && format!("{refused:?}") == refused.to_string(), "{refused}");
    for (refusal, name) in [(kafka.why_group("a b"), "a b"), (kafka.why_transaction("ä/.."), "ä/..")] {
        let refusal = refusal.unwrap_err();
        assert!(refusal.status() == Some(404) && refusal.to_string().contains(name), "{refusal}");
    }
    for gone in [kafka.rebalance("g"), kafka.evict("g", "m"), kafka.abort_transaction("x"), kafka.start_broker(7)] {
        assert_eq!(gone.unwrap_err().status(), Some(404));
    }
    kafka.hold_transaction("x", "prepare").unwrap();
    kafka.release_transaction("x").unwrap();
    assert_eq!(kafka.group("..").unwrap_err().status(), Some(404));
    assert_eq!(kafka.transaction("x").unwrap_err().status(), Some(404));
    assert_eq!(kafka.why_producer(1).unwrap_err().status(), Some(404));
}

#[test]
#[ignore = "run by another"]
fn red() {
    let _kafka = start(["--seed", "3"]).unwrap();
    panic!("on purpose");
}

#[test]
#[ignore = "run by another"]
fn red_by_its_result() -> Result<(), Error> {
    start(["--seed", "3"])?.test(|kafka| {
        kafka.add_fault(Fault::new(Effect::drop()).api("EndTxn"))?;
        kafka.kill_broker(7)
    })
}

#[test]
#[ignore = "run by another"]
fn green() {
    start(["--seed", "3"]).unwrap().test(|kafka| kafka.clear_faults()).unwrap();
}

#[test]
#[ignore = "run by another"]
fn missed() {
    start(["--seed", "3"]).unwrap().add_fault(Fault::new(Effect::drop()).api("EndTxn")).unwrap();
}

#[test]
fn only_a_test_that_fails_prints_the_report() {
    let arguments = ["--ignored", "--test-threads=1"]; // they use the same server
    let done = Command::new(std::env::current_exe().unwrap()).args(arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(printed.contains("1 passed; 3 failed"), "{printed}");
    let of = |name: &str| {
        let (_, after) = printed.split_once(&format!("---- {name} stdout ----")).unwrap_or_default();
        after.split("\n---- ").next().unwrap_or_default().split("\nfailures:").next().unwrap_or_default()
    };
    for (name, reason) in [
        ("red", "on purpose"),
        ("red_by_its_result", "POST /v1/brokers/7/kill: "),
        ("missed", "no request met these faults"),
    ] {
        let text = of(name);
        assert!(text.contains(reason) && text.matches("understudy, last requests:").count() == 1, "{printed}");
    }
}

#[test]
fn a_server_that_was_killed_is_replaced() {
    let options = ["--seed", "4"];
    let kafka = start(options).unwrap();
    let pid = kafka.pid();
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    let killed = Instant::now(); // it ends a moment later
    let ended = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or(") Z".into());
        stat.contains(") Z") && fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count) < 2 // no thread is left
    };
    while !ended() {
        assert!(killed.elapsed() < Duration::from_secs(20), "it was killed, and still runs");
    }
    let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(kafka)));
    let why = *passed.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(
        why.lines().next(),
        Some(&*format!("the server (process {pid}) was killed by signal 9 during this test"))
    );
    let later = start(options).unwrap();
    assert_ne!(later.pid(), pid);
    later.unmet_faults().unwrap();
}

#[test]
fn a_server_that_cannot_be_started_is_explained() {
    let ended = builder().options(["--brokers", "many"]).start().unwrap_err().to_string();
    assert!(ended.contains("it ended with exit status: 2\n") && ended.contains("brokers"), "{ended}");
    let wrong = builder().command("/nowhere/understudy").start().unwrap_err().to_string();
    assert_eq!(wrong, "command is \"/nowhere/understudy\", but there is no such program");
    let slow = script("slow", "exec cat");
    let late = builder().command(slow).start_limit(Duration::from_millis(100)).start().unwrap_err();
    assert!(late.to_string().contains("it took longer than 100ms"), "{late}");
}

#[test]
fn settings_may_be_secrets() {
    let jaas = r#"org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";"#;
    let kafka = builder()
        .options(["--listener", "SASL_PLAINTEXT://127.0.0.1:0"])
        .setting("sasl.enabled.mechanisms", "PLAIN")
        .setting("listener.name.sasl_plaintext.plain.sasl.jaas.config", jaas)
        .start()
        .unwrap();
    let line = Command::new("ps").args(["-ww", "-o", "args=", "-p", &kafka.pid().to_string()]).output().unwrap();
    let line = String::from_utf8_lossy(&line.stdout).into_owned();
    assert!(line.contains("--for-tests") && !line.contains("secret"), "{line}");
}

#[test]
fn a_server_is_stopped_in_order() {
    let folder = std::env::temp_dir().join(format!("understudy-data-{}", std::process::id()));
    drop(builder().data_dir(&folder).start().unwrap());
    assert!(folder.join(".kafka_cleanshutdown").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

/// A command that runs these lines. The file is read, not executed, which fails while another thread starts a process.
fn script(name: &str, lines: &str) -> String {
    let path = std::env::temp_dir().join(format!("understudy-{name}-{}", std::process::id()));
    std::fs::write(&path, format!("rm $0\n{lines}\n")).unwrap();
    format!("sh {}", path.display())
}

/// A server of HTTP that answers each connection with this.
fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut head = [0; 4096];
            let size = connection.read(&mut head).unwrap();
            let _ = connection.write_all(answer(&String::from_utf8_lossy(&head[..size])).as_bytes());
        }
    });
    format!("http://{address}/")
}

#[test]
fn an_answer_of_something_else_is_quoted() {
    let gateway = answering(|_| "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 17\r\n\r\n<html>bad gateway".into());
    let refused = Client::connect(&gateway, None).unwrap_err();
    assert_eq!((refused.status(), &*refused.to_string()), (Some(502), "GET /v1/cluster: <html>bad gateway"));
}

#[test]
fn a_control_plane_that_does_not_answer_is_named() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let kafka = builder()
        .control_limit(Duration::from_millis(50))
        .command(script("pretender", &format!("echo control=http://{address}\ncat")));
    let kafka = kafka.start_limit(Duration::from_secs(20)).separate().start().unwrap();
    let late = kafka.reset().unwrap_err().to_string();
    assert!(late.starts_with(&format!("POST http://{address}/v1/reset: timeout")), "{late}");
    drop(silent);
    let refused = kafka.clock().unwrap_err().to_string();
    assert!(refused.starts_with(&format!("GET http://{address}/v1/clock: ")), "{refused}");
}

#[test]
fn a_token_is_sent() {
    let heads = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&heads);
    let plane = answering(move |head| {
        kept.lock().unwrap().push_str(head);
        let body = r#"{"brokers": [{"host": "::1", "port": 9092}]}"#;
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    assert_eq!(Client::connect(&plane, Some("secret")).unwrap().bootstrap_servers(), "[::1]:9092");
    assert!(heads.lock().unwrap().to_lowercase().contains("authorization: bearer secret"));
}
