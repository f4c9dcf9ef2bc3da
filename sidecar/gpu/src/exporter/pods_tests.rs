//! A device that pods share: the exporter has a line for each.

use std::time::Duration;

use meter::{Load, Tick};

use super::*;
use crate::attribution::{Ended, Prices, Rules};
use crate::gpus::{Gpus, Upstream};
use crate::sampler::Sampler;
use crate::source::Answer;

const SECOND: u64 = 1_000_000_000;

/// Joules a second.
const WATTS: u64 = 100;

/// A page of one device at a second, with a line for each pod; of none, one line without a pod.
fn page(second: u64, pods: &[&str]) -> String {
    let line = |pod: &str| {
        format!(
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"node\"{pod}}} {}\n",
            second * WATTS * 1000
        )
    };
    let named = |pod: &&str| {
        let (namespace, pod) = pod.split_once('/').expect("a namespace");
        line(&format!(",container=\"c\",namespace=\"{namespace}\",pod=\"{pod}\""))
    };
    if pods.is_empty() { line("") } else { pods.iter().map(named).collect() }
}

fn sample(page: &str) -> Sample {
    let mut reader = Reader {
        hostname: None,
        uuids: Vec::new(),
        prefix: String::new(),
        source: SourceName::Dcgm,
        refused: 0,
    };
    reader.read(&Page::read(page))
}

#[test]
fn pods_of_device_are_those_of_its_lines() {
    for (pods, expected) in [
        (&[][..], &[][..]),
        (&["llm/vllm-0"], &["llm/vllm-0"]),
        (&["llm/vllm-0", "llm/vllm-0"], &["llm/vllm-0"]),
        (&["llm/vllm-0", "train/vllm-0"], &["llm/vllm-0", "train/vllm-0"]),
    ] {
        let Sample::Devices(devices) = sample(&page(0, pods)) else { panic!("a page") };
        assert_eq!(devices.len(), 1);
        assert!(devices[0].pods.iter().eq(expected), "{:?}", devices[0].pods);
    }
    // The energy of an instance is its whole device's, and so are its pods.
    let instance = |id: u32| {
        format!("DCGM_FI_DEV_FB_USED{{UUID=\"GPU-a\",GPU_I_ID=\"{id}\",namespace=\"n\",pod=\"p{id}\"}} 1\n")
    };
    let Sample::Devices(devices) = sample(&[instance(1), instance(2)].concat()) else { panic!("a page") };
    let of: Vec<usize> = devices.iter().map(|device| device.pods.len()).collect();
    assert_eq!(of, [2, 0, 0]);
    let many: String =
        (0..1000).map(|pod| format!("DCGM_FI_DEV_GPU_TEMP{{UUID=\"GPU-a\",pod=\"p{pod}\"}} 40\n")).collect();
    let Sample::Devices(devices) = sample(&many) else { panic!("a page") };
    assert_eq!(devices[0].pods.len(), DEVICE_MAX_PODS);
}

/// While pods that are no upstreams use the device, nothing of its use is attributed.
#[test]
fn use_of_device_with_other_pods_is_unattributed() {
    let ours = ["llm/vllm-0", "llm/vllm-1"];
    for (upstreams, is_attributed) in [(1, false), (2, true)] {
        let upstream = Upstream { name: "u".into(), gpus: Some(Gpus::All) };
        let rules = Rules { stale: Duration::from_secs(5), prices: Prices::default(), tenants: 2, models: 2 };
        let mut cells = [Load::default(), Load::default()];
        let loads = |cells: &mut [Load; 2], at| cells.each_mut().map(|cell| cell.read(at));
        let none = loads(&mut cells, Tick(0));
        let mut sampler =
            Sampler::new(rules, &vec![upstream; upstreams], &none[..upstreams]).expect("all set");
        let (mut back, mut entered, mut shared) = (Vec::new(), None, Vec::new());
        for second in 0..=30u64 {
            let at = Tick(second * SECOND);
            let pods = if (10..20).contains(&second) { &ours[..] } else { &ours[..1] };
            let answer = Answer { sample: sample(&page(second, pods)), source: SourceName::Dcgm, refused: 0 };
            let read = loads(&mut cells, at);
            let is_last = second == 30;
            sampler.apply(at, &answer, &read[..upstreams], is_last, &mut |settled| back.push(settled));
            shared.push(sampler.gpus().gpus[0].shared());
            // An exchange from 2 to 6, from 12 to 16, and from 22 to 26.
            match second % 10 {
                2 => entered = Some(cells[0].enter(at)),
                6 => {
                    let entered = entered.take().expect("it began");
                    let left = cells[0].leave(at, &entered);
                    let (model, tenant) = ("m".into(), "t".into());
                    let ended = Ended {
                        upstream: 0,
                        model,
                        tenant,
                        entered,
                        left,
                        output_tokens: 1,
                        context: second,
                    };
                    assert!(sampler.ended(ended).is_none());
                }
                _ => {}
            }
        }
        back.sort_by_key(|settled| settled.context);
        let joules = back.iter().map(|settled| {
            settled.used.and_then(|used| used.energy_nj).map(|nanojoules| nanojoules / 1_000_000_000)
        });
        let of_shared = is_attributed.then_some(4 * WATTS);
        assert_eq!(joules.collect::<Vec<_>>(), [Some(4 * WATTS), of_shared, Some(4 * WATTS)]);
        let reading = sampler.attribution();
        let device = &reading.devices[0];
        // The intervals from 9 to 20 have an end at which there were two pods.
        let unknown = if is_attributed { 0 } else { 11 * u128::from(WATTS * SECOND) };
        assert_eq!(device.unattributed_nj, unknown);
        let whole = device.attributed_nj + device.idle_nj + device.unattributed_nj + device.pending_nj;
        assert_eq!((device.energy_nj, whole), (whole, 30 * u128::from(WATTS * SECOND)));
        let expected: Vec<_> = (0..=30).map(|at| upstreams == 2 || (10..20).contains(&at)).collect();
        assert_eq!(shared, expected);
    }
}
