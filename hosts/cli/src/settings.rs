//! `volcanic settings`: what is set, to what, and by whom.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    config::CliConfig,
    exit::Exit,
    output::{Format, write_json, write_line},
    screen::visible,
};

/// Shows the settings.
///
/// # Errors
/// When nobody reads.
pub(crate) fn settings(config: &CliConfig, format: Format) -> Result<Exit> {
    let home = config.home.display().to_string();
    if format == Format::Json {
        let settings = config.effective.iter().map(|setting| {
            json!({
                "name": setting.name,
                "value": setting.value,
                "source": setting.source,
                "doc": setting.doc,
            })
        });
        write_json(&json!({ "home": home, "settings": settings.collect::<Vec<Value>>() }))?;
        return Ok(Exit::Done);
    }
    write_line(visible(&format!("VOLCANIC_HOME is {home}")))?;
    for setting in &config.effective {
        let value = setting.value.as_deref().unwrap_or("(unset)");
        let source = setting.source.as_ref().map_or_else(String::new, |at| format!("  ({at})"));
        write_line(visible(&format!("{} = {value}{source}", setting.name)))?;
    }
    Ok(Exit::Done)
}
