//! The model that is named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;
use volcanic_agent_core::{Model, ScriptedModel, ScriptedRules, ScriptedRulesError};
use volcanic_agent_llm::{OpenAiConfig, OpenAiConfigError, openai_chat};
use volcanic_base::{Secret, read_text_to_limit};

/// A language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// Canned answers, from a rule file or the built-in rules.
    Scripted {
        /// The rule file.
        rules: Option<PathBuf>,
    },
    /// A model behind an OpenAI-compatible endpoint.
    OpenAi {
        /// Its name there.
        model: String,
    },
}

/// Where `openai:` models are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiAccess {
    /// The base URL.
    pub base_url: Url,
    /// Whether the owner named the server; it may be one without keys.
    pub is_own_server: bool,
    /// The key.
    pub key: Option<Secret>,
}

impl OpenAiAccess {
    /// Whether the server will want a key and there is none.
    pub fn lacks_key(&self) -> bool {
        self.key.is_none() && !self.is_own_server
    }
}

/// Why a name names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelChoiceError {
    /// The provider will be known one day.
    #[error(
        "`{provider}` is not supported yet; use `openai:MODEL`, with OPENAI_BASE_URL for another server that speaks chat \
         completions, or `scripted`"
    )]
    Later {
        /// The provider.
        provider: String,
    },
    /// There is nothing like it.
    #[error("allowed are `openai:MODEL`, `scripted` and `scripted:RULES.toml`")]
    Unknown,
}

impl ModelChoice {
    /// Reads `openai:MODEL`, `scripted` or `scripted:RULES.toml`.
    ///
    /// # Errors
    /// [`ModelChoiceError`], which says what is allowed.
    pub fn parse(text: &str) -> Result<Self, ModelChoiceError> {
        let (provider, rest) = match text.split_once(':') {
            Some((provider, rest)) => (provider, Some(rest)),
            None => (text, None),
        };
        match (provider, rest) {
            ("scripted", None) => Ok(Self::Scripted { rules: None }),
            ("scripted", Some(rules)) if !rules.is_empty() => {
                Ok(Self::Scripted { rules: Some(PathBuf::from(rules)) })
            }
            ("openai", Some(model)) if !model.is_empty() => {
                Ok(Self::OpenAi { model: model.to_owned() })
            }
            ("anthropic" | "gemini" | "ollama" | "openrouter", _) => {
                Err(ModelChoiceError::Later { provider: provider.to_owned() })
            }
            _ => Err(ModelChoiceError::Unknown),
        }
    }

    /// Reads the rule file, if there is one, without building the model.
    ///
    /// # Errors
    /// [`ModelSetupError`], when the file or a rule in it cannot be used.
    pub fn check_rules(&self) -> Result<(), ModelSetupError> {
        match self {
            Self::Scripted { rules: Some(path) } => read_rules(path).map(drop),
            Self::Scripted { rules: None } | Self::OpenAi { .. } => Ok(()),
        }
    }
}

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
pub fn build_model(
    choice: &ModelChoice,
    openai: &OpenAiAccess,
) -> Result<Arc<dyn Model>, ModelSetupError> {
    match choice {
        ModelChoice::Scripted { rules: None } => Ok(Arc::new(ScriptedModel::built_in())),
        ModelChoice::Scripted { rules: Some(path) } => {
            Ok(Arc::new(ScriptedModel::rules(read_rules(path)?)))
        }
        ModelChoice::OpenAi { model } => {
            let OpenAiAccess { base_url, key, .. } = openai;
            Ok(openai_chat(OpenAiConfig::new(base_url.as_str(), key.clone(), model))?)
        }
    }
}

/// The largest rule file, in bytes.
const MAX_RULES: u64 = 1 << 20;

fn read_rules(path: &Path) -> Result<ScriptedRules, ModelSetupError> {
    let text = read_text_to_limit(path, MAX_RULES)
        .map_err(|source| ModelSetupError::Rules { path: path.to_owned(), source })?;
    Ok(ScriptedRules::parse(&path.display().to_string(), &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wanted: Result<ModelChoice, &str>) {
        match (ModelChoice::parse(text), wanted) {
            (Ok(choice), Ok(wanted)) => assert_eq!(choice, wanted),
            (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
            (choice, wanted) => panic!("{choice:?} is not {wanted:?}"),
        }
    }

    #[test]
    fn models_are_chosen_by_provider() {
        let openai = |model: &str| Ok(ModelChoice::OpenAi { model: model.to_owned() });
        check("openai:some/model:tag", openai("some/model:tag"));
        check("scripted", Ok(ModelChoice::Scripted { rules: None }));
        check("scripted:/r.toml", Ok(ModelChoice::Scripted { rules: Some("/r.toml".into()) }));
        check("anthropic:m", Err("`anthropic` is not supported yet; use `openai:MODEL`"));
        for text in ["openai:", "openai", "scripted:", "gpt-5", ""] {
            check(text, Err("allowed are `openai:MODEL`, `scripted` and `scripted:RULES.toml`"));
        }
    }
}
