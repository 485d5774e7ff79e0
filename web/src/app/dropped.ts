// What is dropped on the page: files, and folders with all that is in them.

const paths = new WeakMap<File, string>();

/** With the folders that it was dropped in. */
export function nameOf(file: File): string {
  return (file as File & { path?: string }).webkitRelativePath || (paths.get(file) ?? file.name);
}

/** What lies in no hidden folder, such as `.git`, and is not hidden itself. */
export function plainFiles(files: Iterable<File>): File[] {
  return [...files].filter((file) => !nameOf(file).split("/").some((part) => part.startsWith(".")));
}

/** Everything that was dropped, folders searched through. What may not be read goes to `failed`, and costs no other file. */
export async function droppedFiles(items: DataTransferItemList, failed: (error: unknown) => void): Promise<File[]> {
  // Before anything is waited for: a drop can be read only while it happens.
  const dropped = [...items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const found: File[] = [];
  for (const { entry, file } of dropped) {
    if (entry) await collect(entry, found, failed);
    else if (file) found.push(file);
  }
  return found;
}

async function collect(entry: FileSystemEntry, found: File[], failed: (error: unknown) => void): Promise<void> {
  if (entry.name.startsWith(".")) return;
  try {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      paths.set(file, entry.fullPath.replace(/^\//, ""));
      found.push(file);
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return;
      for (const inside of some) await collect(inside, found, failed);
    }
  } catch (error) {
    failed(error);
  }
}
