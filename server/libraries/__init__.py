"""Libraries: documents that clients upload, indexed in the background, and searched where a request names them."""
