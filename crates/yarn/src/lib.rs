//! Runs the processes of a cluster as an application of Hadoop YARN.
//!
//! A client needs no Java: it puts the program and the settings into a folder of the application in HDFS (the stage), and submits
//! over the REST interface of the ResourceManager a container with the Application Master (`jvm/yarn`). That one asks for a
//! container for each process, and starts again what dies, under its rank. The addresses of the master and the end of the job are files of
//! the stage.
//!
//! | module | contents |
//! |---|---|
//! | [`resource_manager`] | calls of the ResourceManager |
//! | [`application`] | what an application is, and the texts that YARN and the Application Master get |
//! | [`stage`] | the files of an application |

pub mod application;
pub mod error;
pub mod resource_manager;
pub mod stage;

pub use application::{Application, Resources, Role};
pub use error::Error;
pub use resource_manager::{ApplicationReport, ResourceManager};
pub use stage::Stage;
