"""Reports over HTTP: `POST /v1/reports` for one that its client waits for, `/api/reports` for those that outlive it."""
