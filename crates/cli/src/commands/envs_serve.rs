//! `ragen envs serve`: any environment for others to play, as an OpenEnv server or on standard input and output.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use ragen_envs::EnvError;
use ragen_envs::external::serve_stdio;
use ragen_envs::openenv::Server;
use ragen_starpo::agent::env_tag;
use ragen_starpo::config::Config;
use serde_json::Value;

use crate::arguments::Positional;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Serve an environment to other programs: as an OpenEnv server over HTTP and WebSocket, or with --stdio as JSON Lines
/// on standard input and output.
///
/// The address is printed once the server listens; an interrupt ends it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  ragen envs serve FrozenLake --port 8000\n  ragen envs serve SimpleSokoban --stdio\n\n\
Played from Python, with the package openenv:\n  from openenv.core import GenericEnvClient\n  with \
GenericEnvClient(base_url=\"http://127.0.0.1:8000\").sync() as env:\n      \
print(env.reset(seed=123).observation[\"text\"])\n      print(env.step({\"action\": \"Up\"}).reward)"
)]
pub struct Serve {
    /// The environment's tag (see `ragen envs list`), then overrides section.key=value.
    #[arg(value_name = "ENV-TAG|KEY=VALUE", required = true)]
    arguments: Vec<String>,
    /// Speak the environment protocol on standard input and output instead (docs/environment-protocol.md).
    #[arg(long, conflicts_with_all = ["host", "port", "max_sessions"])]
    stdio: bool,
    /// Address to listen on. Whoever can reach it can play; the default is this machine only.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0: any free one.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    port: u16,
    /// Sessions at a time, at most.
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_sessions: usize,
}

impl Serve {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let arguments = Positional::split(&self.arguments, 1, "one environment tag")?;
        let Some(tag) = arguments.name(0) else {
            return Err(Failure::input("expected the tag of an environment; `ragen envs list` lists them"));
        };
        let config = Config::load(None, &arguments.overrides)?;
        let found = env_tag(&config, tag)?;
        if self.stdio {
            let served = serve_stdio(|sent| (env_tag(&with_settings(&config, tag, sent), tag)?.make)());
            return served.map_err(|error| Failure::run(format!("standard input or output failed: {error}")));
        }
        let make = found.make;
        let address = SocketAddr::new(self.host, self.port);
        let server =
            Server::bind(address, tag, self.max_sessions, Box::new(move || -> Result<_, EnvError> { make() }))?;
        let address = server.address().unwrap_or(address);
        output::line(format_args!("{tag} is served at http://{address}"));
        server.run().map_err(|error| Failure::run(format!("the listener at {address} failed: {error}")))
    }
}

/// The configuration with the settings of a handshake laid over those of the tag.
fn with_settings(config: &Config, tag: &str, sent: &Value) -> Config {
    let mut config = config.clone();
    if let Some(sent) = sent.as_object() {
        let custom = config.custom_envs.entry(tag.to_owned()).or_default();
        custom.env_config.get_or_insert_default().extend(sent.clone());
    }
    config
}
