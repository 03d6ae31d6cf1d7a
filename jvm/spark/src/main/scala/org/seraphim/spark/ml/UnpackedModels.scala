package org.seraphim.spark.ml

import java.nio.file.Path
import java.util

import org.seraphim.spark.LocalFolder

/**
 * The models that this process has unpacked, by the digest of their contents, so that tasks share them. A model that no
 * task uses is kept for the next task, unless there are several.
 */
private[ml] object UnpackedModels {
  private val MaxUnused = 2

  private final class Unpacked(val folder: Path) {
    var users = 0
  }

  /** The least recently used model comes first. */
  private val models = new util.LinkedHashMap[String, Unpacked](16, 0.75f, true)

  Runtime.getRuntime.addShutdownHook(new Thread(() => synchronized(models.values.forEach(model =>
    DirectoryArchive.remove(model.folder)))))

  /** Returns the folder of a model, which stays until it is released. */
  def acquire(digest: String, archive: => Array[Byte]): Path = synchronized {
    val model = Option(models.get(digest)).getOrElse {
      val unpacked = new Unpacked(unpack(archive))
      models.put(digest, unpacked)
      unpacked
    }
    model.users += 1
    model.folder
  }

  def release(digest: String): Unit = synchronized {
    models.get(digest).users -= 1
    var unused = models.values.stream.filter(_.users == 0).count()
    val all = models.values.iterator
    while (unused > MaxUnused) {
      val model = all.next()
      if (model.users == 0) {
        all.remove()
        DirectoryArchive.remove(model.folder)
        unused -= 1
      }
    }
  }

  private def unpack(archive: Array[Byte]): Path = {
    val folder = LocalFolder.create("seraphim-model")
    try DirectoryArchive.unpack(archive, folder)
    catch {
      case fault: Throwable =>
        DirectoryArchive.remove(folder)
        throw fault
    }
    folder
  }
}
