//! The files of an application: a folder in the file system of the cluster, which only its user may read.

use std::path::Path;
use std::sync::Arc;

use store::Store;

use crate::application::{Application, JAR, MASTER, PROGRAM, PROPERTIES, StagedFile, TOKEN};
use crate::error::Error;
use crate::resource_manager::{NewApplication, ResourceManager};

/// The folder of an application.
#[derive(Clone, Debug)]
pub struct Stage {
    pub application: String,
    /// Its address.
    pub location: String,
    store: Arc<dyn Store>,
}

/// What the client brings.
#[derive(Clone, Copy, Debug)]
pub struct Uploads<'a> {
    /// The program that runs in the containers.
    pub program: &'a Path,
    /// The jar of the Application Master.
    pub jar: &'a Path,
    pub token: &'a [u8],
    /// The folder for the stages of applications, if it is not in the home of the user.
    pub folder: Option<&'a str>,
}

impl Stage {
    /// The folder of an application below `folder`, or else below `.seraphim` in the home of the user.
    ///
    /// # Errors
    /// If the file system of the cluster is none that this program knows.
    fn open(manager: &ResourceManager, application: &str, folder: Option<&str>) -> Result<Self, Error> {
        let folder = if let Some(folder) = folder {
            folder.trim_end_matches('/').to_owned()
        } else {
            let files = manager.setting("fs.defaultFS")?;
            format!("{}/user/{}/.seraphim", files.trim_end_matches('/'), manager.user())
        };
        let location = format!("{folder}/{application}");
        let store = store::open(&location)?;
        Ok(Self { application: application.to_owned(), location, store })
    }

    /// Uploads the files of an application and submits it.
    ///
    /// # Errors
    /// Those of YARN and of the store.
    pub fn submit(
        manager: &ResourceManager,
        application: &Application,
        new: &NewApplication,
        uploads: Uploads<'_>,
    ) -> Result<Self, Error> {
        let stage = Self::open(manager, &new.id, uploads.folder)?;
        store::create_private_folder(&stage.location)?;
        let started = stage.upload(application, uploads).and_then(|files| {
            let classpath = manager.setting("yarn.application.classpath")?;
            manager.submit(&application.submission(&new.id, &classpath, &files))
        });
        if started.is_err() {
            // What is left costs only space.
            let _ = stage.remove();
        }
        started.map(|()| stage)
    }

    /// Returns the files of the Application Master.
    fn upload(&self, application: &Application, uploads: Uploads<'_>) -> Result<Vec<StagedFile>, Error> {
        let Uploads { program, jar, token, .. } = uploads;
        check_readable(program, "")?;
        check_readable(jar, "; `mvn package` in jvm/yarn makes it, and --yarn-jar names it")?;
        store::upload(program, &*self.store, PROGRAM)?;
        store::upload(jar, &*self.store, JAR)?;
        self.store.write(TOKEN, token)?;
        let of_all = [self.staged(PROGRAM)?, self.staged(TOKEN)?];
        self.store.write(PROPERTIES, application.properties(&self.location, &of_all).as_bytes())?;
        Ok(vec![self.staged(JAR)?, self.staged(PROPERTIES)?])
    }

    fn staged(&self, name: &'static str) -> Result<StagedFile, Error> {
        let facts = self.store.facts(name)?;
        let address = format!("{}/{name}", self.location);
        let modified_ms = facts.modified_ms.unwrap_or_default();
        Ok(StagedFile { name, address, size_bytes: facts.size_bytes, modified_ms })
    }

    /// The file with the addresses of the master.
    pub fn master(&self) -> String {
        format!("{}/{MASTER}", self.location)
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove(&self) -> Result<(), Error> {
        Ok(self.store.remove("")?)
    }
}

fn check_readable(path: &Path, advice: &'static str) -> Result<(), Error> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(()),
        Err(source) => Err(Error::File { path: path.display().to_string(), source, advice }),
    }
}
