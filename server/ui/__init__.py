"""What the page in the browser asks for beside the API of everybody. The page itself is built from web/."""
