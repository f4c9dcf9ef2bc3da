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
