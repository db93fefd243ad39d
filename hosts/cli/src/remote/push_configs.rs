//! `volcanic push-config`: where an agent reports a task's changes by itself.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use serde_json::json;
use url::Url;
use volcanic_a2a_client::{ClientError, KeySource, RemoteAgent, sanitize_remote_line};
use volcanic_a2a_types::{
    AuthenticationInfo, Credential, ListTaskPushNotificationConfigsRequest, PushConfigId, TaskId,
    TaskPushNotificationConfig,
};

use super::{Contact, secrets};
use crate::{
    args::{PushConfigCommand, PushConfigCreateArgs, PushConfigIdArgs, PushConfigListArgs},
    config::CliConfig,
    exit::{Exit, Failure, UsageError},
    output::{Format, note, write_json, write_line},
};

/// What is shown for a secret.
const HIDDEN: &str = "***";

/// The longest word of a remote on a line of ours, in characters.
const WORD: usize = 2000;

/// Does what is said about webhooks.
///
/// # Errors
/// A failure to ask; when the command line or a file of the user's is wrong, a usage error.
pub(crate) async fn push_config(
    command: &PushConfigCommand,
    config: &CliConfig,
    format: Format,
) -> Result<Exit> {
    let open = |args| Contact::open(args, config, format);
    match command {
        PushConfigCommand::Create(args) => create(args, &open(&args.of.at)?).await,
        PushConfigCommand::Get(args) => get(args, &open(&args.of.at)?).await,
        PushConfigCommand::List(args) => list(args, &open(&args.of.at)?).await,
        PushConfigCommand::Delete(args) => delete(args, &open(&args.of.at)?).await,
    }?;
    Ok(Exit::Done)
}

async fn create(args: &PushConfigCreateArgs, contact: &Contact<'_>) -> Result<()> {
    if !Url::parse(&args.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
        return Err(UsageError::new(format!("`{}` is no http or https URL", args.url)).into());
    }
    let mut config =
        TaskPushNotificationConfig::new(args.url.as_str()).with_task(args.of.task.as_str());
    config.id = args.id.as_deref().map(PushConfigId::from);
    config.token = secret(contact, args.token_file.as_deref(), args.token_env.as_deref())?;
    if let Some(scheme) = &args.auth_scheme {
        let credentials = secret(contact, args.auth_file.as_deref(), args.auth_env.as_deref())?;
        let mut authentication = AuthenticationInfo::bearer("");
        authentication.scheme.clone_from(scheme);
        authentication.credentials = credentials;
        config.authentication = Some(authentication);
    }
    let made = contact.ask_webhooks(async |remote| remote.create_push_config(config).await).await?;
    tell(contact, made)
}

async fn get(args: &PushConfigIdArgs, contact: &Contact<'_>) -> Result<()> {
    let (task, id) = ids(args);
    let found =
        contact.ask_webhooks(async |remote| remote.get_push_config(&task, &id).await).await?;
    tell(contact, found)
}

async fn list(args: &PushConfigListArgs, contact: &Contact<'_>) -> Result<()> {
    let mut request = ListTaskPushNotificationConfigsRequest::new(args.of.task.as_str());
    request.page_size = args.page_size.unwrap_or_default();
    request.page_token.clone_from(&args.page_token);
    let mut page =
        contact.ask_webhooks(async |remote| remote.list_push_configs(request).await).await?;
    page.configs = page.configs.into_iter().map(hidden).collect();
    if contact.format == Format::Json {
        return write_json(&page);
    }
    if page.configs.is_empty() {
        write_line("No webhooks.")?;
    }
    for config in &page.configs {
        write_line(line(config))?;
    }
    if let Some(token) = &page.next_page_token {
        let size = args.page_size.map(|size| size.to_string());
        let mut rest = vec![args.of.task.as_str()];
        rest.extend(size.iter().flat_map(|size| ["--page-size", size]));
        note(&format!("({})", contact.next_page("push-config list", &rest, token)));
    }
    Ok(())
}

async fn delete(args: &PushConfigIdArgs, contact: &Contact<'_>) -> Result<()> {
    let (task, id) = ids(args);
    contact.ask_webhooks(async |remote| remote.delete_push_config(&task, &id).await).await?;
    if contact.format == Format::Json {
        return write_json(&json!({ "deleted": { "taskId": task, "id": id } }));
    }
    write_line(format!("Webhook {} is removed.", sanitize_remote_line(id.as_str(), WORD)))
}

fn ids(args: &PushConfigIdArgs) -> (TaskId, PushConfigId) {
    (args.of.task.as_str().into(), args.id.as_str().into())
}

fn tell(contact: &Contact<'_>, config: TaskPushNotificationConfig) -> Result<()> {
    let config = hidden(config);
    match contact.format {
        Format::Json => write_json(&BTreeMap::from([("config", &config)])),
        Format::Text => write_line(line(&config)),
    }
}

/// A webhook on a line.
fn line(config: &TaskPushNotificationConfig) -> String {
    let word = |text: &str| sanitize_remote_line(text, WORD);
    let id = config.id.as_ref().map_or_else(|| "(no id)".to_owned(), |id| word(id.as_str()));
    let token = if config.token.is_some() { ", with a token" } else { "" };
    let scheme = config.authentication.as_ref();
    let scheme = scheme.map_or_else(String::new, |with| format!(", by {}", word(&with.scheme)));
    format!("{id}  {}{token}{scheme}", word(&config.url))
}

/// The same without its secrets: they are not all of our making.
fn hidden(mut config: TaskPushNotificationConfig) -> TaskPushNotificationConfig {
    let hide = |secret: &mut Option<Credential>| {
        if secret.is_some() {
            *secret = Some(HIDDEN.into());
        }
    };
    hide(&mut config.token);
    if let Some(authentication) = &mut config.authentication {
        hide(&mut authentication.credentials);
    }
    config
}

/// A secret for the agent to keep.
fn secret(
    contact: &Contact<'_>,
    file: Option<&Path>,
    variable: Option<&str>,
) -> Result<Option<Credential>> {
    let Some(source) = secrets::source(file, variable)? else { return Ok(None) };
    let secret = match &source {
        KeySource::Plain(secret) => secret.clone(),
        source => (contact.caller.keys)(source).map_err(UsageError::of)?,
    };
    if let Some(mask) = &contact.mask {
        mask.learn(&secret);
    }
    Ok(Some(Credential::new(secret.expose())))
}

impl Contact<'_> {
    /// Asks about webhooks, unless the card does not say that the agent calls any.
    async fn ask_webhooks<T>(
        &self,
        work: impl AsyncFnOnce(&RemoteAgent) -> Result<T, ClientError>,
    ) -> Result<T> {
        let asked = self.ask(async |remote| {
            if !remote.pushes() {
                return Ok(None);
            }
            Ok(Some(work(&remote).await?))
        });
        asked.await?.ok_or_else(|| self.has_no_webhooks().into())
    }

    fn has_no_webhooks(&self) -> Failure {
        let agent = self.target.name();
        let text = format!("The card of agent \"{agent}\" does not say that it calls webhooks.");
        Failure::new(Exit::Failed, "pushNotificationNotSupported", text).with("agent", agent)
    }
}
