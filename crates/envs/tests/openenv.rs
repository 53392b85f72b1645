//! OpenEnv client and server against each other, and the client against servers that misbehave. `scripts/openenv.sh`
//! plays both against the package itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use ragen_envs::openenv::{OpenEnv, OpenEnvConfig, Server};
use ragen_envs::{EnvError, Environment, Split, registry};
use serde_json::{Value, json};

fn serve(env_type: &'static str, config: Value, max_sessions: usize) -> SocketAddr {
    let make = Box::new(move || registry::make(env_type, &config));
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), env_type, max_sessions, make).unwrap();
    let address = server.address().unwrap();
    std::thread::spawn(move || server.run());
    address
}

/// The settings that show what a server of ours shows.
fn client(address: SocketAddr) -> OpenEnvConfig {
    OpenEnvConfig { url: format!("http://{address}"), timeout_s: 5.0, ..OpenEnvConfig::default() }
}

#[test]
fn a_built_in_environment_plays_the_same_over_the_network() {
    for (env_type, config) in [("frozen_lake", json!({ "success_rate": 0.7 })), ("sokoban", json!({}))] {
        let address = serve(env_type, config.clone(), 4);
        let mut near = registry::make(env_type, &config).unwrap();
        let mut far = OpenEnv::new(&client(address)).unwrap();
        assert_eq!(near.spec().actions, far.spec().actions);
        assert_eq!(near.spec().instruction, far.spec().instruction);
        for seed in 123..133 {
            assert_eq!(near.reset(seed, Split::Val).unwrap(), far.reset(seed, Split::Val).unwrap());
            for action in ["Left", "up", "fly", "DOWN", "Right", "Right", "Up"] {
                let (a, b) = (near.step(action).unwrap(), far.step(action).unwrap());
                assert_eq!(a, b);
                assert_eq!((near.render(), near.state_key()), (far.render(), far.state_key()));
                if a.terminated {
                    assert!(far.step("Up").unwrap_err().to_string().contains("after the end"));
                    break;
                }
            }
        }
    }
}

#[test]
fn more_episodes_than_the_server_takes_sessions() {
    let address = serve("sokoban", json!({}), 2);
    let mut near: Vec<_> = (0..5).map(|_| registry::make("sokoban", &json!({})).unwrap()).collect();
    let mut far: Vec<_> = (0..5).map(|_| OpenEnv::new(&client(address)).unwrap()).collect();
    for (seed, (a, b)) in (0..).zip(near.iter_mut().zip(&mut far)) {
        assert_eq!(a.reset(seed, Split::Train).unwrap(), b.reset(seed, Split::Train).unwrap());
    }
    for action in ["Left", "Up", "Right", "Down"] {
        for (a, b) in near.iter_mut().zip(&mut far) {
            assert_eq!(a.step(action).unwrap(), b.step(action).unwrap());
        }
    }
    // Others have all sessions: that is told, not waited for.
    let settings = OpenEnvConfig { timeout_s: 4.0, ..client(address) };
    let error = OpenEnv::new(&settings).unwrap().reset(0, Split::Train).unwrap_err().to_string();
    assert!(error.contains("takes no session"), "{error}");
    drop(far);
}

/// A server that answers the discovery and then, on the WebSocket, does what it is told.
fn rogue(play: impl Fn(&mut dyn ReadWrite) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let play = std::sync::Arc::new(play);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), play) = (stream, std::sync::Arc::clone(&play)) else { return };
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let body = match head.split(' ').nth(1).unwrap_or_default() {
                    "/health" => json!({ "status": "healthy" }),
                    "/metadata" => json!({ "name": "rogue", "description": "A rogue." }),
                    "/schema" => json!({ "action": { "properties": { "message": { "type": "string" } } } }),
                    _ => {
                        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
                        let accept = tungstenite::handshake::derive_accept_key(key.trim().as_bytes());
                        let answer = format!(
                            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                             Sec-WebSocket-Accept: {accept}\r\n\r\n"
                        );
                        let _ = stream.write_all(answer.as_bytes());
                        return play(&mut stream);
                    }
                }
                .to_string();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    address
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// Answers every message with what `answer` makes of its number.
fn answering(answer: impl Fn(usize) -> String + Send + Sync + 'static) -> SocketAddr {
    rogue(move |stream| {
        let role = tungstenite::protocol::Role::Server;
        let mut socket = tungstenite::WebSocket::from_raw_socket(stream, role, None);
        let mut n = 0;
        while let Ok(message) = socket.read() {
            if message.is_text() {
                if socket.send(tungstenite::Message::text(answer(n))).is_err() {
                    return;
                }
                n += 1;
            }
        }
    })
}

fn observation(text: &str, reward: Value, done: bool) -> String {
    json!({ "type": "observation", "data": { "observation": { "said": text }, "reward": reward, "done": done } })
        .to_string()
}

#[test]
fn a_server_that_breaks_ends_the_episode_in_time() {
    let first_then = |second: String| {
        answering(move |n| if n == 0 { observation("hello", json!(null), false) } else { second.clone() })
    };
    let cases: Vec<(SocketAddr, &str)> = vec![
        (first_then("not json".into()), "what is no JSON"),
        (first_then("{}".into()), "answered otherwise"),
        (first_then(observation("much", json!("much"), false)), "no number"),
        (first_then(json!({ "type": "observation", "data": {} }).to_string()), "no observation"),
        (
            first_then(
                json!({ "type": "error", "data": { "code": "EXECUTION_ERROR", "message": "boom" } }).to_string(),
            ),
            "boom",
        ),
        (first_then(observation(&"x".repeat(50 << 20), json!(0), false)), "too"),
        (
            rogue(|stream| {
                // Something comes all the time, and never a whole message.
                let _ = stream.write_all(&[0x81, 0x7e, 0x7f, 0xff]);
                while stream.write_all(b" ").is_ok() {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }),
            "did not answer within 400ms",
        ),
        (rogue(|_| std::thread::sleep(Duration::from_secs(60))), "did not answer within 400ms"),
        (rogue(|_| {}), ""),
    ];
    for (address, words) in cases {
        let begun = Instant::now();
        let mut env = OpenEnv::new(&OpenEnvConfig { timeout_s: 0.4, ..client(address) }).unwrap();
        let result = env.reset(1, Split::Train).and_then(|_| env.step("hi"));
        let error = result.unwrap_err();
        assert!(matches!(error, EnvError::Play { .. }), "{error:?}");
        assert!(error.to_string().to_lowercase().contains(&words.to_lowercase()), "no {words:?} in {error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{words} took {:?}", begun.elapsed());
    }
}

#[test]
fn a_server_that_repeats_differently_is_noticed() {
    // Answers differ from session to session; with one connection two episodes have to take turns.
    let count = std::sync::atomic::AtomicUsize::new(0);
    let address = answering(move |_| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        observation(&n.to_string(), json!(0), false)
    });
    let settings = OpenEnvConfig { connections: 1, ..client(address) };
    let (mut a, mut b) = (OpenEnv::new(&settings).unwrap(), OpenEnv::new(&settings).unwrap());
    a.reset(1, Split::Train).unwrap();
    b.reset(2, Split::Train).unwrap();
    let error = a.step("hi").unwrap_err().to_string();
    assert!(error.contains("max_concurrent_envs"), "{error}");
}

#[test]
fn where_no_server_is_that_is_said() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = OpenEnv::new(&client(free)).err().unwrap();
    assert!(matches!(error, EnvError::Config { .. }), "{error:?}");
    assert!(error.to_string().contains("is an OpenEnv server running there?"), "{error}");
}

#[test]
fn the_endpoints_beside_the_socket() {
    let address = serve("sokoban", json!({}), 1);
    let get = |path: &str| -> Value {
        let mut response = ureq::get(&format!("http://{address}{path}")).call().unwrap();
        serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap()
    };
    assert_eq!(get("/health"), json!({ "status": "healthy" }));
    assert_eq!(get("/metadata")["name"], "sokoban");
    assert_eq!(get("/schema")["action"]["properties"]["action"]["enum"], json!(["Up", "Down", "Left", "Right"]));
    let mut response = ureq::post(&format!("http://{address}/reset")).send(r#"{"seed": 123, "split": "val"}"#).unwrap();
    let reset: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
    let mut near = registry::make("sokoban", &Value::Null).unwrap();
    assert_eq!(reset["observation"]["text"], json!(near.reset(123, Split::Val).unwrap()));
    assert!(ureq::get(&format!("http://{address}/nothing")).call().is_err());
}
