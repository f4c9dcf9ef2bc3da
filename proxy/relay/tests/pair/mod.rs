//! Laws of a pair of connections: scripts of any bytes, cut anywhere, keep the laws of HTTP/1.1. A fuzz target runs the same
//! scripts.

mod canonical;
mod laws;
#[expect(dead_code, reason = "the framing crate's tests use the rest")]
#[path = "../../../http1/tests/messages/naive.rs"]
mod naive;
mod run;
mod script;

pub(crate) use laws::assert_pair;
pub(crate) use run::Stage;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::laws::assert_script;
    use super::script::{Script, Step};
    use super::{Stage, assert_pair};

    /// Words of requests, valid and not.
    const REQUESTS: [&str; 22] = [
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 31\r\n\r\n\
         {\"stream\":true, \"messages\": []}",
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /c HTTP/1.0\r\n\r\n",
        "GET /c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST /d HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "POST /e HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n",
        "GET /f HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n",
        "POST /g HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\nContent-Length: 5\r\n\r\n",
        "Content-Length: 3\r\n",
        "Connection: close\r\n",
        "\r\n",
        "5\r\nhello\r\n",
        "5;a=b\r\nhello\r\n",
        "0\r\n\r\n",
        "0\r\nx: y\r\n\r\n",
        "hello",
        "\n",
    ];

    /// Words of answers, valid and not.
    const ANSWERS: [&str; 19] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\ncontent-length: 5\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
        "5\r\nhello\r\n",
        "05 ;a\r\nhello\r\n",
        "a\r\ndata: {}\n\n\r\n",
        "33\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n\r\n",
        "2f\r\ndata: {\"choices\":[],\"usage\":{\"completion_tok\r\ne\r\nens\":7}}\n\ndat\r\n",
        "0\r\n\r\n",
        "0\r\nx: y\r\n\r\n",
        "hello",
        "\u{1}",
    ];

    const INVALID_REQUESTS: [&str; 12] = [
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /# HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\n",
        "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "not a request",
        "\u{16}\u{3}\u{1}\u{2}",
    ];

    const INVALID_ANSWERS: [&str; 6] = [
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx y: z\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "SSH-2.0-server",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
    ];

    fn words(of: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(proptest::sample::select(of), 0..6)
            .prop_map(|words| words.concat().into_bytes())
    }

    thread_local! {
        static STAGE: Stage = Stage::new();
    }

    fn assert_steps(modes: u8, steps: &[u8], requests: &[u8], answers: &[Vec<u8>]) {
        let answers = answers.iter().flat_map(|answer| [&[0xFE][..], answer].concat());
        let count = steps.len() as u8 + 64 * modes;
        let input = [&[count][..], steps, requests, &answers.collect::<Vec<_>>()].concat();
        STAGE.with(|stage| assert_pair(stage, &input));
    }

    #[test]
    fn equal_lengths_reach_the_client_as_one() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok";
        assert_steps(0, &[], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[answer.to_vec()]);
    }

    #[test]
    fn body_that_was_read_whole_has_no_rest() {
        // All is sent, and the client closes its connection; then the end of the server's connection ends the body.
        let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}".to_vec();
        let request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
        assert_steps(1, &[0x1F, 0x76, 0xE1], request, &[answer]);
    }

    /// The script of a client and a server that send these pieces.
    fn pieces(client: &[&[u8]], answer: &[&[u8]]) -> Script {
        let steps = client.iter().map(|piece| Step::Send(piece.len()));
        let steps = steps.chain(answer.iter().map(|piece| Step::Answer(piece.len()))).collect();
        let (client, answers) = (client.concat(), vec![answer.concat()]);
        Script { is_edited: false, half_close: false, steps, client, answers }
    }

    /// The beginning in one piece, the rest in pieces of one byte.
    fn bytewise(bytes: &[u8], beginning: usize) -> Vec<&[u8]> {
        let (beginning, rest) = bytes.split_at(beginning);
        std::iter::once(beginning).filter(|piece| !piece.is_empty()).chain(rest.chunks(1)).collect()
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn heads_may_arrive_byte_by_byte() {
        STAGE.with(|stage| {
            for request in REQUESTS.into_iter().chain(INVALID_REQUESTS) {
                for next in [&b""[..], GET, b"\r\n"] {
                    assert_script(stage, &pieces(&bytewise(&[request.as_bytes(), next].concat(), 0), &[]));
                }
            }
            for answer in ANSWERS.into_iter().chain(INVALID_ANSWERS) {
                for next in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"] {
                    assert_script(stage, &pieces(&[GET], &bytewise(&[answer.as_bytes(), next].concat(), 0)));
                }
            }
        });
    }

    /// A head of this length, with fields of 600 bytes.
    fn long_head(start: &str, len: usize) -> Vec<u8> {
        let field = format!("x: {}\r\n", "y".repeat(595));
        let mut head = start.as_bytes().to_vec();
        while head.len() + field.len() + 9 < len {
            head.extend(field.as_bytes());
        }
        let rest = len - head.len() - 7;
        head.extend(format!("z: {}\r\n\r\n", "y".repeat(rest)).as_bytes());
        assert_eq!(head.len(), len);
        head
    }

    #[test]
    fn limits_of_heads_are_exact_however_they_arrive() {
        let body = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        STAGE.with(|stage| {
            for excess in -3..4_isize {
                let len = 65_536_usize.saturating_add_signed(excess);
                let head = long_head("GET / HTTP/1.1\r\nHost: a\r\n", len);
                assert_script(stage, &pieces(&bytewise(&head, len - 50), &[body]));
                let answer = long_head("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", len);
                assert_script(stage, &pieces(&[GET], &bytewise(&answer, len - 50)));
                let target =
                    "x".repeat(65_500_usize.saturating_add_signed(excess) - "GET / HTTP/1.1\r".len());
                let head = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n");
                assert_script(stage, &pieces(&bytewise(head.as_bytes(), 65_470), &[body]));
            }
        });
    }

    /// The nanoseconds for which this thread has run.
    fn run_ns() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        stat.split(' ').next().unwrap().parse().unwrap()
    }

    /// The time that the last bytes of a head take which arrive one by one.
    fn time_of_bytes(stage: &Stage, head: &[u8], is_answer: bool) -> u64 {
        let (client, answer) = (&bytewise(head, head.len() - 2000)[..], &[&b""[..]][..]);
        let script = if is_answer { pieces(&[GET], client) } else { pieces(client, answer) };
        let begun = run_ns();
        let _seen = stage.run(&script);
        run_ns() - begun
    }

    #[test]
    fn bytes_of_long_heads_cost_as_much_as_those_of_short_ones() {
        STAGE.with(|stage| {
            for (start, is_answer) in
                [("GET / HTTP/1.1\r\nHost: a\r\n", false), ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", true)]
            {
                // On a busy machine, some runs take longer.
                let times = [2500, 60_000].map(|len| {
                    let head = long_head(start, len);
                    (0..5).map(|_| time_of_bytes(stage, &head, is_answer)).min().unwrap()
                });
                assert!(times[1] < 3 * times[0], "{start}: {times:?}");
            }
        });
    }

    /// The worker's memory serves other connections while the client sends nothing.
    #[test]
    fn upload_that_waits_for_its_client_has_no_output_memory() {
        let heads = [
            "Content-Length: 10",
            "Transfer-Encoding: chunked",
            "Content-Length: 10\r\nExpect: 100-continue",
        ];
        for (head, body) in heads.into_iter().zip(["", "5\r\nhello\r\n", "hello"]) {
            for first in [0, body.len()] {
                let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n");
                let script = pieces(&[head.as_bytes(), &body.as_bytes()[..first]], &[]);
                let seen = STAGE.with(|stage| stage.run(&script));
                assert!(seen.free_output_bytes >= head.len(), "{} bytes\n{script}", seen.free_output_bytes);
            }
        }
    }

    /// The bytes before the client leaves are the last that the server's socket takes, or the first that it does not take.
    #[test]
    fn client_that_leaves_behind_its_upload_is_noticed() {
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n";
        STAGE.with(|stage| {
            for count in 0..64 {
                let piece = [b'x'; 8 << 10];
                let mut script = pieces(&[&[&head[..]], &vec![&piece[..]; count][..]].concat(), &[]);
                script.steps.insert(0, Step::StallServer);
                script.steps.push(Step::CloseClient);
                assert_script(stage, &script);
            }
        });
    }

    /// A stream of this many frames with five characters each. Each frame is two chunks, cut at `cut`.
    fn stream(frames: usize, cut: usize) -> Vec<u8> {
        let frame = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
        let (first, second) = frame.split_at(cut);
        let mut answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
            Transfer-Encoding: chunked\r\n\r\n"
            .to_vec();
        for part in (0..frames).flat_map(|_| [first, second]) {
            http1::write_chunk(&mut answer, part.as_bytes());
        }
        [&answer[..], b"0\r\n\r\n"].concat()
    }

    proptest! {
        #![proptest_config(chance::cases(1_000))]

        #[test]
        fn pair_keeps_the_laws(
            modes in 0..4_u8,
            steps in proptest::collection::vec(any::<u8>(), 0..12),
            requests in words(&REQUESTS),
            answers in proptest::collection::vec(words(&ANSWERS), 0..3),
        ) {
            assert_steps(modes, &steps, &requests, &answers);
        }

        #[test]
        fn each_byte_is_metered_once(
            cuts in proptest::collection::vec(0..0xC0_u8, 0..20),
            frames in 0..8_usize,
            cut in 0..50_usize,
            is_edited: bool,
        ) {
            let request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n{\"stream\":true}";
            let parts = [&request[..], &stream(frames, cut)].join(&0xFE);
            let count = cuts.len() as u8 + 128 * u8::from(is_edited);
            let script = Script::read(&[&[count][..], &cuts, &parts].concat());
            let seen = STAGE.with(|stage| stage.run(&script));
            let chars: Vec<_> = seen.records.iter().map(|record| record.visible_chars).collect();
            prop_assert_eq!(chars, [5 * frames as u64], "{}", script);
        }
    }
}
