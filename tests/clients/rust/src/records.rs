//! The records of the script, numbered as tests/clients/steps.py says.

pub const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

pub type Headers = Vec<(String, Option<Vec<u8>>)>;

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub partition: i32,
    pub timestamp_ms: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Headers,
}

impl Record {
    /// Where it was and what it holds, as text.
    pub fn plain(&self, offset: i64) -> String {
        let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (name, text(value))).collect();
        let (key, value) = (text(&self.key), text(&self.value));
        format!("{}@{offset} {} {key:?} {value:?} {headers:?}", self.partition, self.timestamp_ms)
    }
}

pub fn record(base_ms: i64, number: i32, key: Option<String>, value: Option<String>, headers: Headers) -> Record {
    Record {
        partition: number % 3,
        timestamp_ms: base_ms + 1000 * i64::from(number),
        key: key.map(String::into_bytes),
        value: value.map(String::into_bytes),
        headers,
    }
}

/// The records of one step: its name after "produce_".
pub fn of_step(base_ms: i64, step: &str) -> Vec<Record> {
    let three = |first: i32, part: &dyn Fn(i32) -> (Option<String>, Option<String>, Headers)| -> Vec<Record> {
        (0..3)
            .map(|i| {
                let (key, value, headers) = part(i);
                record(base_ms, first + i, key, value, headers)
            })
            .collect()
    };
    let text = |text: &str| Some(text.to_string());
    match step {
        "headers" => {
            let bytes = |text: &str| Some(text.as_bytes().to_vec());
            let headers = vec![("h".into(), bytes("one")), ("h".into(), bytes("two")), ("empty".into(), bytes(""))];
            three(150, &|i| (Some(format!("headers-{i}")), text("headers"), headers.clone()))
        }
        "nulls" => {
            let mut records = three(153, &|i| (Some(format!("null-{i}")), None, vec![]));
            records.extend(three(156, &|i| (None, Some(format!("no-key-{i}")), vec![])));
            records
        }
        "idempotent" => three(159, &|i| (Some(format!("idempotent-{i}")), text("idempotent"), vec![])),
        "null_header" => {
            three(162, &|i| (Some(format!("null-header-{i}")), text("headers"), vec![("null".into(), None)]))
        }
        codec => {
            let first = 30 * CODECS.iter().position(|each| *each == codec).unwrap() as i32;
            let value = |i: i32| Some(format!("{codec}-value-{i}-{}", "x".repeat(100)));
            (0..30).map(|i| record(base_ms, first + i, Some(format!("{codec}-{i}")), value(i), vec![])).collect()
        }
    }
}
