//! A file on its way up, as a form (RFC 7578).

/// A form, ready to be sent.
pub(super) struct Form {
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

/// The form of `sendDocument`.
pub(super) fn document(chat: i64, name: &str, content: Vec<u8>, caption: Option<&str>) -> Form {
    let boundary = boundary_beside(&content, caption.unwrap_or_default());
    let mut head = String::new();
    let mut field = |name: &str, value: &str| {
        let begin = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        head.extend([&*begin, "\r\n\r\n", value, "\r\n"]);
    };
    field("chat_id", &chat.to_string());
    if let Some(caption) = caption {
        field("caption", caption);
    }
    let file = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"document\"; filename=\"{}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n",
        quoted(name)
    );
    let mut body = head.into_bytes();
    body.extend(file.into_bytes());
    body.extend(content);
    body.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    Form { content_type: format!("multipart/form-data; boundary={boundary}"), body }
}

/// A line that is in neither of the two.
fn boundary_beside(content: &[u8], caption: &str) -> String {
    let mut number = 0_u64;
    loop {
        let boundary = format!("volcanic-part-{number:016x}");
        let is_in =
            |text: &[u8]| text.windows(boundary.len()).any(|window| window == boundary.as_bytes());
        if !is_in(content) && !is_in(caption.as_bytes()) {
            return boundary;
        }
        number += 1;
    }
}

/// A name between quotes, as browsers write it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_is_not_broken_by_what_is_in_it() {
        let content = b"volcanic-part-0000000000000000".to_vec();
        let form = document(7, "a\"b\r\n.txt", content, Some("volcanic-part-0000000000000001"));
        assert!(form.content_type.ends_with("boundary=volcanic-part-0000000000000002"));
        let body = String::from_utf8(form.body).unwrap();
        assert!(body.contains("name=\"document\"; filename=\"a%22b%0D%0A.txt\"\r\n"), "{body}");
        assert_eq!(body.matches("--volcanic-part-0000000000000002").count(), 4, "{body}");
    }
}
