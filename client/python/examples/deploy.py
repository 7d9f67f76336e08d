import perfd

with perfd.Client() as client:
    client.add({"event": "external:deploy", "fields": [
        {"name": "user", "type": "text"},
        {"name": "version", "type": "u32"}]})
    reply = client.emit({"event": "external:deploy",
                         "values": ["ann", 7]})
    print(f"{reply.taken} taken, {reply.late} late, {reply.lost} lost")
    client.remove("external:deploy")
