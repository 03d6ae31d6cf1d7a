package org.seraphim.spark.ml

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.file.{Files, Path}
import java.util.zip.{Deflater, ZipEntry, ZipInputStream, ZipOutputStream}

/** Folders as bytes, so that they travel between machines. */
private[ml] object DirectoryArchive {

  /** Returns the files of a folder by their relative names. */
  def files(folder: Path): Seq[(String, Path)] = {
    val files = below(folder).filter(path => Files.isRegularFile(path))
    files.map(file => (folder.relativize(file).toString, file)).sortBy(_._1)
  }

  /** Returns a folder and all that is in it; what contains others is before them. */
  private def below(folder: Path): Seq[Path] = {
    val walk = Files.walk(folder)
    try walk.toArray.map(_.asInstanceOf[Path]).toList finally walk.close()
  }

  def pack(folder: Path): Array[Byte] =
    pack(files(folder).map { case (name, file) => (name, Files.readAllBytes(file)) })

  /** Packs files with these names. The bytes depend on nothing else. */
  def pack(files: Seq[(String, Array[Byte])]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream()
    val zip = new ZipOutputStream(bytes)
    zip.setLevel(Deflater.BEST_SPEED)
    files.foreach { case (name, content) =>
      val entry = new ZipEntry(name)
      entry.setTime(0)
      zip.putNextEntry(entry)
      zip.write(content)
      zip.closeEntry()
    }
    zip.close()
    bytes.toByteArray
  }

  /** Calls `each` with every file. */
  def foreach(archive: Array[Byte])(each: (String, Array[Byte]) => Unit): Unit = {
    val zip = new ZipInputStream(new ByteArrayInputStream(archive))
    Iterator.continually(zip.getNextEntry).takeWhile(_ != null).foreach { entry =>
      val content = new ByteArrayOutputStream()
      val buffer = new Array[Byte](1 << 16)
      Iterator.continually(zip.read(buffer)).takeWhile(_ > 0).foreach(count => content.write(buffer, 0, count))
      each(entry.getName, content.toByteArray)
    }
  }

  /** Returns an archive with one file more. */
  def add(archive: Array[Byte], name: String, content: Array[Byte]): Array[Byte] = {
    var all = Seq((name, content))
    foreach(archive)((name, content) => all :+= ((name, content)))
    pack(all.sortBy(_._1))
  }

  def unpack(archive: Array[Byte], folder: Path): Unit = foreach(archive) { (name, content) =>
    val file = folder.resolve(name)
    Files.createDirectories(file.getParent)
    Files.write(file, content)
  }

  /** Returns one file of an archive. */
  def read(archive: Array[Byte], name: String): Option[Array[Byte]] = {
    var found: Option[Array[Byte]] = None
    foreach(archive)((entry, content) => if (entry == name) found = Some(content))
    found
  }

  /** Removes a folder with all that is in it. */
  def remove(folder: Path): Unit =
    if (Files.exists(folder)) below(folder).reverse.foreach(path => Files.deleteIfExists(path))
}
