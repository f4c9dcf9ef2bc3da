//! A simulated GPU: a dcgm-exporter's page of one card at a constant 300 W.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The exporter; dropping it ends it.
pub(crate) struct Card {
    task: JoinHandle<()>,
    address: SocketAddr,
}

impl Card {
    /// Starts it.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let began = Instant::now();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = [0; 4096];
                // One small request per connection, which arrives in one read on loopback.
                let _ = stream.read(&mut asked).await;
                let page = page(began.elapsed().as_secs_f64());
                let length = page.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all((head + &page).as_bytes()).await;
            }
        });
        Self { task, address }
    }

    /// The address of its page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The page after this number of seconds.
fn page(seconds: f64) -> String {
    // 4: the power limit.
    let energy = format!("{:.0}", 300_000.0 * seconds);
    let readings = [
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", energy.as_str()),
        ("DCGM_FI_DEV_POWER_USAGE", "gauge", "300"),
        ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", "700"),
        ("DCGM_FI_DEV_GPU_UTIL", "gauge", "87"),
        ("DCGM_FI_DEV_FB_USED", "gauge", "74000"),
        ("DCGM_FI_DEV_FB_FREE", "gauge", "7000"),
        ("DCGM_FI_DEV_GPU_TEMP", "gauge", "61"),
        ("DCGM_FI_DEV_SM_CLOCK", "gauge", "1980"),
        ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "2619"),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "0.952"),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "0.411"),
        ("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "0.6"),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "4"),
        ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "3"),
        ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "0"),
    ];
    let labels = r#"gpu="0",UUID="GPU-11111111-aaaa-bbbb-cccc-000000000000",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",DCGM_FI_DRIVER_VERSION="580.1""#;
    readings
        .iter()
        .map(|(name, kind, value)| format!("# TYPE {name} {kind}\n{name}{{{labels}}} {value}\n"))
        .collect()
}
