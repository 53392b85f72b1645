//! Options that are chosen by name: a macro that makes an enum whose variants read and write as their configuration
//! names, and refuse an unknown name with the legal ones and the nearest.

/// Defines an enum with configuration names. After a `|` come further names that are understood but not written.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$variant_meta:meta])* $Variant:ident = $name:literal $(| $alias:literal)*),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name {
            $($(#[$variant_meta])* $Variant),+
        }

        impl $Name {
            /// All names, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in configuration files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct NameVisitor;
                impl serde::de::Visitor<'_> for NameVisitor {
                    type Value = $Name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, "one of {}", $Name::NAMES.join(", "))
                    }

                    fn visit_str<E: serde::de::Error>(self, found: &str) -> Result<$Name, E> {
                        match found {
                            $($name $(| $alias)* => Ok($Name::$Variant),)+
                            _ => {
                                let near = $crate::config::nearest::nearest(found, $Name::NAMES.iter().copied());
                                let legal = $Name::NAMES.join(", ");
                                let expected = match near {
                                    Some(near) => format!("one of {legal} (did you mean `{near}`?)"),
                                    None => format!("one of {legal}"),
                                };
                                Err(E::invalid_value(serde::de::Unexpected::Str(found), &expected.as_str()))
                            }
                        }
                    }
                }
                deserializer.deserialize_str(NameVisitor)
            }
        }
    };
}

pub(crate) use named_enum;
