"""Arrays, devices, streams and backends: what every solver runs on."""
