"""RSTool over HTTP: `POST /v1/evidence` gives the evidence of a search, `GET /v1/tools` its definition as a tool."""
