//! The model that the settings name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use volcanic_agent_core::{Model, ScriptedModel, ScriptedRules, ScriptedRulesError};
use volcanic_agent_llm::{OpenAiConfig, OpenAiConfigError, openai_chat};

use crate::config::ModelChoice;

/// An error while the model is set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelSetupError {
    /// The rule file cannot be read.
    #[error("failed to read the rules of the scripted model from {}", path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A rule is wrong.
    #[error("failed to understand the rules of the scripted model")]
    Rule(#[from] ScriptedRulesError),
    /// The endpoint cannot be used.
    #[error("failed to set up the model")]
    OpenAi(#[from] OpenAiConfigError),
}

/// Builds the model. No request is made.
///
/// # Errors
/// [`ModelSetupError`].
pub fn build_model(choice: &ModelChoice) -> Result<Arc<dyn Model>, ModelSetupError> {
    match choice {
        ModelChoice::Scripted { rules: None } => Ok(Arc::new(ScriptedModel::built_in())),
        ModelChoice::Scripted { rules: Some(path) } => {
            Ok(Arc::new(ScriptedModel::rules(read_rules(path)?)))
        }
        ModelChoice::OpenAi { model, base_url, key } => {
            Ok(openai_chat(OpenAiConfig::new(base_url.as_str(), key.clone(), model))?)
        }
    }
}

fn read_rules(path: &Path) -> Result<ScriptedRules, ModelSetupError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ModelSetupError::Rules { path: path.to_owned(), source })?;
    Ok(ScriptedRules::parse(&path.display().to_string(), &text)?)
}
