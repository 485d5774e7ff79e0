"""One file a change, in the order of their numbers; a file that was released is never edited."""
