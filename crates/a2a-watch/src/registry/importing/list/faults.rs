//! Every prefix and every flipped bit of a list.

use super::*;

/// A list as the view writes it, the tasks in it, and where each entry ends.
fn view(count: usize) -> (Vec<u8>, Vec<(String, usize)>) {
    let mut text = "[".to_owned();
    let mut ends = Vec::new();
    for number in 0..count {
        let task = format!("{:08x}-task", number * 0x9e37_79b1);
        let entry = serde_json::json!({
            "watchId": "5d41402abc4b2a76b9719d911017c592", "target": "chat", "agent": "travel-bot", "taskId": task,
            "contextId": null, "pushToken": null, "startedAt": "2026-11-30T12:00:00Z", "source": "poll",
            "undelivered": "[{\"agent\": \"travel-bot\", \"taskId\": \"forged\"}]", "state": "claimed", "hops": 0,
            "ref": "m7",
        });
        let entry = serde_json::to_string_pretty(&entry).unwrap();
        text += if number == 0 { "\n" } else { ",\n" };
        text += &entry;
        ends.push((task, text.len()));
    }
    ((text + "\n]\n").into_bytes(), ends)
}

fn tasks(list: &List) -> Vec<&str> {
    list.listed.iter().map(|listed| listed.task_id.as_str()).collect()
}

#[test]
fn every_prefix_of_a_list_gives_the_entries_that_are_whole() {
    let (view, ends) = view(20);
    for length in 0..=view.len() {
        let list = List::read(&view[..length]);
        let whole: Vec<_> = ends.iter().filter(|(_, end)| *end <= length).collect();
        let whole: Vec<_> = whole.into_iter().map(|(task, _)| task.as_str()).collect();
        assert_eq!(tasks(&list), whole, "cut at {length}");
        assert_eq!(list.is_whole, length + 1 >= view.len(), "cut at {length}");
    }
}

#[test]
fn every_flipped_bit_of_a_list_costs_one_entry_at_most() {
    let (view, ends) = view(3);
    for at in 0..view.len() {
        let damaged = ends.iter().find(|(_, end)| at < *end).map(|(task, _)| task.as_str());
        for bit in 0..8 {
            let mut bytes = view.clone();
            bytes[at] ^= 1 << bit;
            let list = List::read(&bytes);
            for (task, _) in &ends {
                let is_there = list.listed.iter().any(|listed| listed.task_id == *task);
                assert!(
                    is_there || damaged == Some(task),
                    "bit {bit} of byte {at} lost {task}: {:?}",
                    tasks(&list)
                );
            }
            assert!(!tasks(&list).contains(&"forged"), "bit {bit} of byte {at}");
            let is_lossy = !list.is_whole || list.left_out > 0;
            assert!(is_lossy || list.listed.len() == ends.len(), "bit {bit} of byte {at}");
        }
    }
}
