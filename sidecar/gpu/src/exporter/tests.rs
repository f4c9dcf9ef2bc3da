//! Parsing of pages, which are written by hand after the exporters' documentation.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;

const DCGM: &str = include_str!("../../tests/pages/dcgm.txt");
const ROCM: &str = include_str!("../../tests/pages/rocm.txt");

fn reader(hostname: Option<&str>, uuids: &[&str], prefix: &str) -> Reader {
    Reader {
        hostname: hostname.map(str::to_owned),
        uuids: uuids.iter().map(|uuid| (*uuid).into()).collect(),
        prefix: prefix.to_owned(),
        source: SourceName::None,
        refused: 0,
    }
}

fn devices_of(reader: &mut Reader, page: &str) -> Vec<Device> {
    match reader.read(&Page::read(page)) {
        Sample::Devices(devices) => devices,
        Sample::Failed(reason) => panic!("{reason}"),
    }
}

#[test]
fn dcgm_page_is_read() {
    let mut reader = reader(None, &[], "");
    let all = devices_of(&mut reader, DCGM);
    assert_eq!(reader.source, SourceName::Dcgm);
    let uuids: Vec<&str> = all.iter().map(|device| &*device.uuid).collect();
    let (first, second) =
        ("GPU-11111111-aaaa-bbbb-cccc-000000000000", "GPU-22222222-aaaa-bbbb-cccc-000000000000");
    assert_eq!(uuids, [first, second, &format!("{second}/1"), &format!("{second}/2")]);
    let mib = 1 << 20;
    let device = &all[0];
    assert_eq!((device.index, device.vendor), (Some(0), Some("nvidia")));
    assert_eq!(
        (device.name.as_deref(), device.driver.as_deref()),
        (Some("NVIDIA H100 80GB HBM3"), Some("570.86.15"))
    );
    assert_eq!((device.energy_nj, device.power_mw), (Some(1_729_430_718_000_000), Some(412_345)));
    assert_eq!((device.utilization_ppm, device.temperature_c), (Some(970_000), Some(51.0)));
    assert_eq!((device.memory_used, device.memory_total), (Some(74_000 * mib), Some(81_559 * mib)));
    assert_eq!((device.clocks.sm, device.clocks.graphics), (Some(1_980_000_000), None));
    let activity = device.activity;
    assert_eq!((activity.graphics, activity.tensor, activity.dram), (Some(0.952013), Some(0.411), Some(0.6)));
    assert_eq!((activity.sm, activity.encoder, device.processes), (None, None, None));
}

#[test]
fn instances_have_memory_and_the_parent_has_energy() {
    let all = devices_of(&mut reader(None, &[], ""), DCGM);
    let [_, whole, one, two] = &all[..] else { panic!("{all:?}") };
    assert_eq!((whole.energy_nj, whole.clocks.sm), (Some(905_337_123_000_000), Some(1_755_000_000)));
    assert_eq!(whole.power_mw, None, "9223372036854775794 is DCGM's value for unknown");
    assert_eq!((whole.memory_used, whole.activity.graphics), (None, None));
    assert_eq!((one.energy_nj, one.memory_used, one.memory_total), (None, Some(30_000 << 20), None));
    assert_eq!((two.activity.graphics, two.parent.as_ref()), (Some(0.25), Some(&whole.uuid)));
}

#[test]
fn rocm_page_is_read() {
    let mut reader = reader(None, &[], "AMD_");
    let all = devices_of(&mut reader, ROCM);
    assert_eq!(reader.source, SourceName::Rocm);
    let [first, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*first.uuid, first.index, first.vendor), ("692251001124", Some(0), Some("amd")));
    assert_eq!(first.energy_nj, Some(24_785_212_375_000), "whole µJ");
    assert_eq!((first.power_mw, first.utilization_ppm), (Some(512_000), Some(630_000)));
    assert_eq!((first.activity.dram, first.temperature_c), (Some(0.12), Some(45.0)));
    assert_eq!((first.memory_used, first.memory_total), (Some(296 << 20), Some(196_592 << 20)));
    assert_eq!((second.energy_nj, second.power_mw), (None, Some(90_500)));
}

#[test]
fn page_of_another_machine_is_rejected() {
    let second = "gpu-22222222-AAAA-bbbb-cccc-000000000000";
    for (hostname, uuids, expected) in [
        (None, &[][..], Some(4)),
        (Some("node-a"), &[], Some(4)),
        (Some("NODE-A"), &[], Some(4)),
        (Some("node-b"), &[], None),
        (None, &["GPU-of-elsewhere"], None),
        // The named device, and its instances, which have names of their own.
        (None, &[second], Some(3)),
        (Some("node-b"), &[second], Some(3)),
    ] {
        let mut reader = reader(hostname, uuids, "");
        match (reader.read(&Page::read(DCGM)), expected) {
            (Sample::Devices(devices), Some(count)) => {
                assert_eq!(devices.len(), count, "{hostname:?} {uuids:?}")
            }
            (Sample::Failed(reason), None) => {
                assert!(reason.starts_with("the exporter's page is of node-a, not of "), "{reason}");
                assert_eq!(reader.refused, 1);
            }
            (other, _) => panic!("{hostname:?} {uuids:?}: {other:?}"),
        }
    }
}

#[test]
fn page_without_known_names_is_a_failed_sample() {
    for page in ["", "up 1\n", "vllm:num_requests_running 3\n", "gpu_\n"] {
        let said = reader(None, &[], "").read(&Page::read(page));
        assert_eq!(said, Sample::Failed("the exporter's page has no known metric".to_owned()), "{page:?}");
    }
    let said = reader(None, &[], "dcgm_exporter_").read(&Page::read(DCGM));
    assert!(matches!(said, Sample::Failed(_)), "its names lack the prefix");
}

#[test]
fn impossible_values_are_absent() {
    for (name, value) in [
        ("POWER_USAGE", "NaN"),
        ("POWER_USAGE", "-1"),
        ("POWER_USAGE", "2147483632"),
        ("GPU_UTIL", "101"),
        ("GPU_TEMP", "2147483632"),
        ("TOTAL_ENERGY_CONSUMPTION", "9223372036854775794"),
        ("TOTAL_ENERGY_CONSUMPTION", "+Inf"),
        ("FB_USED", "2147483632"),
    ] {
        let page =
            format!("DCGM_FI_DEV_{name}{{UUID=\"a\"}} {value}\nDCGM_FI_DEV_MEM_CLOCK{{UUID=\"a\"}} 5\n");
        let all = devices_of(&mut reader(None, &[], ""), &page);
        let mut expected = Device { uuid: "a".into(), vendor: Some("nvidia"), ..Device::default() };
        expected.clocks.memory = Some(5_000_000);
        assert_eq!(all, [expected], "{name} {value}");
    }
}

#[test]
fn devices_are_bounded() {
    let lines = (0..1000).map(|number| format!("DCGM_FI_DEV_GPU_TEMP{{UUID=\"GPU-{number}\"}} 40\n"));
    assert_eq!(devices_of(&mut reader(None, &[], ""), &lines.collect::<String>()).len(), MAX_DEVICES);
}

#[test]
fn exporter_is_read_over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let server = std::thread::spawn(move || {
        for (status, page) in [("200 OK", DCGM), ("503 Service Unavailable", "not yet")] {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut head = [0; 1024];
            let read = stream.read(&mut head).expect("a request");
            assert!(head[..read].starts_with(b"GET /metrics HTTP/1.1\r\n"));
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{page}", page.len())
                .expect("it reads");
        }
    });
    let (hostname, prefix) = (Some("node-a".to_owned()), String::new());
    let plan = ExporterPlan {
        fetcher: Fetcher::http("127.0.0.1", port, ""),
        path: "/metrics".to_owned(),
        hostname,
        prefix,
    };
    let mut exporter = Exporter::new(plan, vec![]);
    assert!(matches!(exporter.sample(), Sample::Devices(devices) if devices.len() == 4));
    assert_eq!(exporter.name(), SourceName::Dcgm);
    assert_eq!(exporter.sample(), Sample::Failed("the exporter answered status 503 to /metrics".to_owned()));
    server.join().expect("it answered twice");
    assert!(
        matches!(exporter.sample(), Sample::Failed(reason) if reason.starts_with("the exporter cannot be read: "))
    );
}
