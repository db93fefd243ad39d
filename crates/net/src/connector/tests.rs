use tokio::net::TcpListener;

use super::*;

fn addresses(list: &[&str]) -> Vec<SocketAddr> {
    list.iter().map(|address| address.parse().unwrap()).collect()
}

#[test]
fn name_with_one_private_address_is_refused_whole() {
    let mixed = addresses(&["93.184.216.34:443", "127.0.0.1:443"]);
    let error = admit(mixed.clone(), "x.example:443", GuardPolicy::PublicOnly).unwrap_err();
    let NetError::Refused { host, address } = error else { panic!("{error:?}") };
    assert_eq!((host.as_str(), address), ("x.example:443", Some("127.0.0.1".parse().unwrap())));
    assert_eq!(admit(mixed.clone(), "x", GuardPolicy::Open).unwrap(), mixed);
}

#[test]
fn targets_have_host_and_default_port() {
    for (uri, host, port) in [
        ("http://a.example/x", "a.example", 80),
        ("https://a.example", "a.example", 443),
        ("https://[::1]:8443/", "::1", 8443),
    ] {
        assert_eq!(target(&uri.parse().unwrap()).unwrap(), (host, port), "{uri}");
    }
    assert!(target(&"ftp://a.example/".parse().unwrap()).is_err());
    assert!(target(&"/path".parse().unwrap()).is_err());
}

#[test]
fn labels_bracket_ipv6() {
    assert_eq!(
        (label("::1", 80), label("a.example", 443)),
        ("[::1]:80".into(), "a.example:443".into())
    );
}

#[tokio::test]
async fn refused_address_gives_way_to_the_next() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = dead.local_addr().unwrap();
    drop(dead);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let good = listener.local_addr().unwrap();
    let stream = connect_any(vec![gone, good], "x:1", Duration::from_mins(1)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), good);
}

#[tokio::test]
async fn no_address_at_all_is_a_connect_error() {
    let error = connect_any(vec![], "x:1", Duration::from_mins(1)).await.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn peer_is_checked_on_the_open_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    assert!(matches!(
        vet(&stream, "x:1", GuardPolicy::PublicOnly),
        Err(NetError::Refused { address: Some(_), .. })
    ));
    vet(&stream, "x:1", GuardPolicy::Open).unwrap();
    assert!(stream.nodelay().unwrap());
    assert!(SockRef::from(&stream).keepalive().unwrap());
}
