"""Little worlds are made here, from a seed and how hard they are to be: documents, questions, and folders of both."""
